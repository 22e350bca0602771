"""A network of the site's own CNI plugins, by an administrator's list."""
