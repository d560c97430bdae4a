"""Models that VS Code windows lend: the windows that are connected, and the back end that asks them."""
