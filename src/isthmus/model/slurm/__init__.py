"""What Slurm offers and limits, as plain data."""
