"""Driving the same core in virtual time, from workloads and recordings instead of from the world."""
