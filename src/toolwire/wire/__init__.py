"""Bytes to frames and back: server-sent events and bounded, exact JSON."""
