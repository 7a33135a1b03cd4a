"""Deciding what to ask for and what to give back: pure functions."""
