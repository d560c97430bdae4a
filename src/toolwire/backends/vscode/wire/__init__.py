"""VS Code's language models over the bridge of our extension, without I/O: the frames, and what they mean in both directions."""
