"""Networks between nodes: names and ports that the deployer and the nodes both know."""
