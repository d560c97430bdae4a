"""Reasoning signatures that clients drop and back ends require: what to store of a turn, and how to restore it."""
