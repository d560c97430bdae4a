"""Answers from a cassette: recorded requests and their answers."""
