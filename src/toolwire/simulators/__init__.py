"""Servers that stand in for a vendor's: to try a back end without an account, and to test it."""
