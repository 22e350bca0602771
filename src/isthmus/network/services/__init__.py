"""The Services of a user's cluster as rules within each of their pods."""
