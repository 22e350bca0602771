"""The observed state of a pod and the actions it calls for; pure functions."""
