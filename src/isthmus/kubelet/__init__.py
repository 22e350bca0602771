"""Runs each pod of a user as one Slurm job: control loops around the pure packages translate, status and node."""
