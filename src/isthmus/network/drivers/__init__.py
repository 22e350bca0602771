"""Network drivers: one folder each.

A driver `x` is a member of `isthmus.model.network.Driver` and the folder `x` here, and nothing else of the daemon names
it. In the folder are

definition   DEFINITION: how a job's addresses come about, whether it is traced, its tunnel's port, its settings
network      `connect`: what makes its pods on this node, a Network

The rest of the folder is the driver's own: its plan, its rules, its loop. `registry` and `node` find them by
name; `contract` and `node` say what they must hold. The packet filter, DNS and trace follow the contract.
"""
