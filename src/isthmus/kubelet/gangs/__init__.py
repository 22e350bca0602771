"""Gang scheduling: all pods of a group start together or none does. `groups`, `fitting` and `gang` are pure."""
