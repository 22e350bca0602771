"""Container images as files that start at once: one compressed squashfs per digest in the user's cache."""
