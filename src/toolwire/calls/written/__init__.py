"""Tool calls written as text: the prompt that explains tools to a model, and the scanner that finds calls in its text."""
