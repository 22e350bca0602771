"""The node object, which represents everything of Slurm that the user may use."""
