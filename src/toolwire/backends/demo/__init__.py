"""The demo model: a back end without an account that picks tools by the prompt's text."""
