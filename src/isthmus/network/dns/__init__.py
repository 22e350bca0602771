"""DNS names of pods, for the node's CoreDNS and for the resolvers of pods and hosts."""
