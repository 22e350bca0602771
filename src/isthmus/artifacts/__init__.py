"""Third-party programs on the deployer: the table, the cache, and the ways to obtain each."""
