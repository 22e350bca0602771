"""Slurm job steps with options beyond Slurm's own."""
