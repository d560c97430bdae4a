"""The owner's configuration: the file, its values, secrets."""
