"""What the roles compute: Ansible filters as a plain package, one module per layer."""
