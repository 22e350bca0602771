"""Namespaces, processes and Apptainer: what a container is to the kernel."""
