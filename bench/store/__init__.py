"""What the shared store costs: CPU of the gateway for a stateful request, and look-ups in a large store."""
