"""A plain Kubernetes to compare with: the official programs on nodes of their own, however they were made.

It is known by a kubeconfig alone. Nothing of this project is in it: an MPIJob must say itself what policies of
admission add here.
"""
