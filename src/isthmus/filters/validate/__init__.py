"""Offline validation of a site: every problem at once, each with its file and its remedy."""
