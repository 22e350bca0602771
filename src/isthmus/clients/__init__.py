"""The edge: the only packages that spawn programs or talk to the network, one module per outside system."""
