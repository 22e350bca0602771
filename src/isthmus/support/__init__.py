"""Helpers for every program of Isthmus, without outside systems."""
