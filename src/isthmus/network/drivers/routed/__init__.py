"""A network without a tunnel: packets of pods are routed as they are, and sets of addresses keep users apart."""
