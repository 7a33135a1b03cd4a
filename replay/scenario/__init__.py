"""Scenarios: a simulated site, what is done to it, and what must come of it."""
