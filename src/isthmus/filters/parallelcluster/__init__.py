"""The provider ParallelCluster: a site's variables as a cluster's configuration, and what AWS has as an inventory."""
