"""The kubelet's own server: logs, exec, attach, port-forward and figures."""
