"""Images of pods: whether, with what credentials and when one is pulled, and what of the cache goes."""
