"""The edge: the only packages that spawn processes or talk to the network, one module per outside system."""
