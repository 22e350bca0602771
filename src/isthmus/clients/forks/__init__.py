"""What a program needs that forks processes for users: they give up its rights, and have bounds of their own."""
