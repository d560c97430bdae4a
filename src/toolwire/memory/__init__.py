"""State between requests: stored answers, conversations, the cache of decoded histories, reasoning signatures."""
