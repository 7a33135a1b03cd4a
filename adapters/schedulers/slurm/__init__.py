"""A real Slurm as the batch system: what its commands print becomes one snapshot."""
