"""Operators that a user adds to a cluster of their own: what the site offers, how it is added, looked at, removed.

What is offered was made by role `workloads`. A cluster has no record of its own of what was added: its objects tell.
"""
