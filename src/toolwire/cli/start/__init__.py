"""Commands for the first minutes: a configuration, and a client for one session."""
