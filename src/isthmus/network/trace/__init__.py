"""Traces a packet through the rules in force, to explain why it arrives or not."""
