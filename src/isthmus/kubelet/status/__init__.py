"""The status of pods: phase, conditions, statuses of containers, and events."""
