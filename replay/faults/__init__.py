"""Deterministic fault testing: all processes, the network, the disk and the providers in virtual time, from one seed (SPEC R7)."""
