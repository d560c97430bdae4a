"""The <tool_call> format and its variants, as Hermes models and simulated tools use it."""
