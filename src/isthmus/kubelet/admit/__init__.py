"""What a pod may ask for here; pure. Everything else is refused with its reason and its remedy."""
