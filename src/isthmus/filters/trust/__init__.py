"""Keys, certificates, secrets, and the cluster's identity."""
