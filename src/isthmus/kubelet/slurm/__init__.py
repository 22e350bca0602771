"""Pods as Slurm jobs: submission, cancellation and the observed state of all jobs."""
