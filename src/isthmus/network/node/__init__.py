"""The desired state of one node's kernel and packet filter, and the steps towards it."""
