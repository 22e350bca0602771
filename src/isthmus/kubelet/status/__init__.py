"""What the API server is told of a pod: phase, conditions, statuses of containers, events."""
