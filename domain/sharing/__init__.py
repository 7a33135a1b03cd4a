"""Elastic shared resources: licence tokens that are owned, borrowed, lent."""
