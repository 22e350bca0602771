"""Gateways: pods' way out and in leads over some members, where the packet filter decides and addresses stay the same.

Every user with jobs has a leg on each gateway (`state.ipam`). On its own node a pod's frame for the outside gets the
MAC of the user's leg on the gateway that leads out, so it goes there as to any other of the user's pods, and no route
anywhere says which gateway that is. One gateway leads out at a time: it alone has the outside addresses.

settings   what the admin decides
choice     by which leg a user's pods go out
rules      what the packet filter has more
exposing   ports that users open to the outside: pure decisions
active     which gateway leads out: a key of etcd's that goes with a lease; the daemon's loops on gateways
outside    the outside addresses, on the gateway that leads out
"""
