"""Servers of an OpenStack cloud for a cluster's nodes, and what they need; the calls are in clients.openstack."""
