"""How messages of a run travel: HTTP/2 streams, server-sent events, unary calls."""
