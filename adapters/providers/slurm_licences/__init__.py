"""The provider ``slurm-licences``: tokens that slurmdbd divides between clusters, or that stand in ``Licenses=``."""
