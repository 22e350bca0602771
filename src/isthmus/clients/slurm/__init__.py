"""Slurm by its own commands."""
