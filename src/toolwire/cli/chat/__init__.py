"""A conversation in a terminal: what is typed, what is shown, and who is asked before a tool changes something."""
