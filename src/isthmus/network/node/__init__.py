"""What one node's kernel and packet filter should hold, and the steps that bring it about."""
