"""The cluster's own authorities, what they sign, and kubeconfigs."""
