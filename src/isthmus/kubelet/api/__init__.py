"""The kubelet API: logs, exec, attach, port-forward and metrics."""
