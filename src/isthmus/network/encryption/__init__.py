"""Encryption between nodes: WireGuard below the VXLAN of private networks.

Each node has one device and one key pair. The private key is made on the node and is in the device alone: no file has
it, no message, and a device that is gone takes it along. The public key is in etcd, in a record that the node signs
with the key of a certificate which the cluster's CA has given to that node by name and address: all daemons may write
to etcd, and none of them can publish another node's key.

identity   certificates, signatures
records    what a node publishes, and who is trusted
follow     the device follows the records

VXLAN keeps a node's own address, and its packets are led to the device by a rule of routing (`clients.wireguard.way`).
So each node's packets can only be from its own address: WireGuard refuses others. Three things hold at any moment, also
while the daemon is away, whether there is a device or not:

- VXLAN's packets do not leave by any other interface, and are not taken from any other (`rules`);
- a node without a valid record is no peer, so nothing is sent to it;
- nothing but VXLAN goes by the device.

So a node that encrypts and one that does not do not reach each other's pods until both are, and nobody's
packets are ever in the clear in between. Jobs that need such a node fail when they begin, with the reason.
"""
