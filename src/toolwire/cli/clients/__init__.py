"""The clients that can be connected: what each needs, and how its settings file is changed."""
