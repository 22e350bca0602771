"""Layer workloads: the site's offer to users, as files for hosts."""
