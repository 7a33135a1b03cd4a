"""Batch systems that the live driver watches."""
