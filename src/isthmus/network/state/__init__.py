"""The pod networks in etcd: read, followed, and changed by transactions; who gets which address."""
