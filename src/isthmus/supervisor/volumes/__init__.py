"""The pod's volumes and small files, made inside its own mounts."""
