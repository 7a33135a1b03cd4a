"""Aggregates of what is owned or owed, one a file."""
