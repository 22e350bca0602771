"""Images: recipes, the node image, and the registry's desired content."""
