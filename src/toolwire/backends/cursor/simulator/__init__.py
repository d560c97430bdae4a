"""A simulator of Cursor's Agent API on loopback, with the requests and refusals of the real service."""
