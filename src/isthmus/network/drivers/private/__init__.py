"""A network of its own for each user: a VXLAN between the nodes, a bridge (the leg) on each."""
