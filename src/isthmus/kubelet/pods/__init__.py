"""One worker per pod: from its first sight to its last file."""
