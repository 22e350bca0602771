"""Pod networks: a network of its own for each user's jobs, the same on every node, without rights for the user.

etcd holds what is true for the cluster (keys, codec): which node is where, which user has which blocks of the pod
range, which job has which address on which node. Whoever needs addresses works them out from the whole state (ipam)
and writes them in one transaction, which fails if another was faster. Every node's daemon works out from the same
state what its kernel should hold (plan), compares it with what is there, and takes the steps between. Users and
Slurm's plugin ask the daemon by a socket (protocol), which tells it by the kernel's word who asks.

Decisions are pure functions of the state, in these modules; who talks to the kernel, etcd and Slurm is in
`isthmus.clients`, and loops are in `main` alone.
"""
