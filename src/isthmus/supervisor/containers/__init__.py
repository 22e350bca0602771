"""Containers of the pod through all their starts: probes, logs, streams, figures."""
