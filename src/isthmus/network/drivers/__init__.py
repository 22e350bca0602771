"""The networks that a job can have."""
