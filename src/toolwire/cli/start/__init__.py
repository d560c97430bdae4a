"""Commands for the first minutes: a client for one session."""
