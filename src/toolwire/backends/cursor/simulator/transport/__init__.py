"""The simulator's HTTP/1.1 and HTTP/2 servers."""
