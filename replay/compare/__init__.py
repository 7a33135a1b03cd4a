"""Several policies over the same workloads: what each run is judged by, and which is best."""
