"""rtnetlink(7): interfaces, addresses, routes and namespaces of a node's kernel."""
