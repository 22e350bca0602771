"""API objects that pods reference: watched, read, or created for them."""
