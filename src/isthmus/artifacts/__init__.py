"""Third-party programs on the deployer: their table, the cache, and the ways to obtain each."""
