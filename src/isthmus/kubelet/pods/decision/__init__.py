"""What is known of a pod and what is to be done for it; pure."""
