"""Kinds of volumes: a file for each, with what is refused, what it needs, and its part of the plan. It is all pure."""
