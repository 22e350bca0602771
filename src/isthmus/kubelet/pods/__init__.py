"""One worker per pod reconciles it with its Slurm job, from creation to the removal of its files."""
