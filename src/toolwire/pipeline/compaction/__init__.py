"""Compaction for back ends that have none: a conversation becomes a summary that the client stores, sealed, and sends back."""
