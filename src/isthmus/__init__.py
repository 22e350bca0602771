"""Isthmus: Slurm and Kubernetes on the same nodes."""
