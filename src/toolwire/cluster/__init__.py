"""Several processes as one gateway: a live run belongs to one of them, and the others forward its continuations to it."""
