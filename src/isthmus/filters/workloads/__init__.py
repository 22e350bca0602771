"""Layer workloads: what the site offers to users, as the files that hosts get."""
