"""The durable log on the eventsourcing library."""
