"""The way of one request: prepare it, send it, read the reply, check its calls."""
