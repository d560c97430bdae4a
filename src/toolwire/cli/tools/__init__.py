"""`toolwire tools`: which tools a model would get, what they cost, and which names collide."""
