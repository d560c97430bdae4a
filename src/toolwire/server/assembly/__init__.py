"""The runtime of a gateway, built from its configuration, and replaced part by part when the configuration is read again."""
