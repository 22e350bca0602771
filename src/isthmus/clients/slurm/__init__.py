"""Slurm by its commands."""
