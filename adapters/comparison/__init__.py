"""Policies over workloads, in parallel: which runs there are, carrying them out, and keeping what came of them."""
