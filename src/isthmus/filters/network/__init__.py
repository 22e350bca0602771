"""The layer network."""
