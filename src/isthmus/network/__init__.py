"""Pod networks: every user's jobs share a private network across all nodes, without any privilege for the user.

etcd holds what is true for the cluster (keys, codec): which node is where, which user has which blocks of the pod
range, which job has which address on which node. A caller that needs addresses computes them from the whole state
(ipam) and writes them in one transaction, which fails if another was faster. Every node's daemon works out from the
same state what its kernel should hold (plan), compares it with what is there, and takes the steps between. Users and
Slurm's plugin ask the daemon by a socket (protocol), which knows the peer by the kernel's credentials.

Decisions are pure functions of the state, in these modules; who talks to the kernel, etcd and Slurm is in
`isthmus.clients`, and loops are in `main` alone.
"""
