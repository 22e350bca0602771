"""Linux namespaces, processes and Apptainer sandboxes."""
