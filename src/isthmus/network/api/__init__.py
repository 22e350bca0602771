"""The daemon's API on Unix sockets: protocol, limits and operations."""
