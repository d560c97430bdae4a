"""Cursor's Agent API without I/O: the messages that are sent for a request, and the meaning of those that come back."""
