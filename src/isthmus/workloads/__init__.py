"""Operators that a user adds to a cluster: the site's offer, installing, status, removal.

What is offered was made by role `workloads`. A cluster has no record of what was added: its objects show it.
"""
