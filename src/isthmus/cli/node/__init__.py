"""Implementation of `isthmus node`: join, tokens, health."""
