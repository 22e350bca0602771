"""Pods as Slurm jobs: how one is asked for, and what Slurm says of all of them."""
