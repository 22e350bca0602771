"""Build tools of the deployer: downloads, Go, Debian's tools."""
