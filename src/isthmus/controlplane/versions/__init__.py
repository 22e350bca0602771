"""Versions of Kubernetes: images of the site, the version that ran a user's data last, and moves between versions."""
