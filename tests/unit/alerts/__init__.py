"""Alerts: what is raised, what is over, and who was told."""
