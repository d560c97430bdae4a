"""Checks an endpoint: whether its wire format, its tool calls and its behaviour are what clients expect."""
