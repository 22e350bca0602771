"""etcd v3 by its JSON gateway."""
