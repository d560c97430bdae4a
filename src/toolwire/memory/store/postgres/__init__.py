"""The store in PostgreSQL, which several gateways on several machines share."""
