"""Forms of Kubernetes' API that several programs read."""
