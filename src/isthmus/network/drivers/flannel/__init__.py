"""Flannel's network, which all users share; flanneld is a service beside the daemon, CNI plugins connect the pods."""
