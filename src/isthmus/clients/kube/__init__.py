"""Kubernetes API servers."""
