"""Slurm's power saving with servers of a cloud: nodes are created when jobs wait, and deleted when they are idle."""
