"""The layer slurm: settings, nodes, partitions, accounting."""
