"""The Cursor Agent API as a back end: its two transports, the owner's key, runs that wait for results, local tools."""
