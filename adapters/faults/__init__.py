"""Fault testing of the real provisioner: its parts under a virtual site, campaigns over seeds, and what failed made small."""
