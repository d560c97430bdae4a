"""A request as the first message of a run, with its history and context."""
