"""The HTML report of a simulation: one file that needs nothing else."""
