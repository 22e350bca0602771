"""The state of pod networks in etcd: loaded, watched and changed by transactions; address management."""
