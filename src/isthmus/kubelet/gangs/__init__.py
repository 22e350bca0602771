"""Gangs: pods of a group start together, or none of them does. `groups`, `fitting` and `gang` decide, `loop` acts."""
