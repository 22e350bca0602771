"""Turns each pod of a user into one Slurm job: loops around the decisions of translate, status and node."""
