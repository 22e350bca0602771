"""Upgrades: what hosts have, what the inventory wants, and the steps between."""
