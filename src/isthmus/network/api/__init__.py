"""The daemon's sockets: who asks for what, within which limits, and what is done about it."""
