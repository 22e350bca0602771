"""Keys, certificates, secrets, and which cluster this is."""
