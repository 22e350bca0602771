"""Operators that a user adds to a cluster of his own: what the site offers, and how it is added, looked at and removed.

What is offered was made by role `workloads`. A cluster has no record of its own of what was added: its objects tell.
"""
