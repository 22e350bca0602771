"""What all providers share: which one makes the nodes, and the kinds of nodes of a site."""
