"""The durable log on PostgreSQL, for several machines."""
