"""The provider ``slurm-local``: hosts of a Slurm that are slurmd processes on this machine."""
