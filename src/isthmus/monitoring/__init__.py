"""Eyes on the cluster: what is looked at on a node, and isthmus-exporter, which makes figures of it for Prometheus.

The exporter listens nowhere. It writes text files (Prometheus' format 0.0.4) that node exporter alone may read, and
that one asks for Prometheus' certificate; so no user of a shared host reads figures of others, and no number of readers
has Slurm asked more often than the exporter's own clock does. Each part has a thread, a file and an interval of its
own: one that hangs or fails takes no other's figures away, and its own are then not old ones but none.
"""
