"""A long run of mixed requests against one gateway, to see that nothing in it grows."""
