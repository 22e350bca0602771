"""The node object that stands for all of Slurm this user may use."""
