"""Images: recipes, the node image, and what the registry shall hold."""
