"""Servers and other resources of an OpenStack cloud for a cluster's nodes; the API is called by clients.openstack."""
