"""Chaos: several gateways and PostgreSQL, killed and restarted under load, and a check that nothing acknowledged was lost."""
