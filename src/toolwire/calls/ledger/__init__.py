"""Repair of conversation histories: every call gets its result, every result its call, in an order that back ends accept."""
