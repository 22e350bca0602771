"""etcd's data: where the newest are, who may write them, snapshots."""
