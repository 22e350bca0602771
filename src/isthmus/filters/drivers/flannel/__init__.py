"""Flannel's network: its configuration in etcd, its CNI plugins, and checks of its range."""
