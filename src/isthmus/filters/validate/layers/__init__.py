"""Offline validation, layer by layer."""
