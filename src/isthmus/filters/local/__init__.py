"""The local test bed."""
