"""What the deployer builds with: downloads, the Go tools, Debian's tools."""
