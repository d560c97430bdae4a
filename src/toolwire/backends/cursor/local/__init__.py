"""Execs of the agent service that run in this process, on the owner's workspace."""
