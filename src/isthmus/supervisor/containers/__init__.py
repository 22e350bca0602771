"""Containers of the pod across restarts: probes, logs, streams, metrics."""
