"""What `isthmus node` does on a node: join, tokens, health."""
