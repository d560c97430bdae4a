"""Back ends reached over HTTP in any dialect, and the HTTP/1.1 client under them."""
