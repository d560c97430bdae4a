"""A back end that replays a script: the fake model behind the tests."""
