"""Login pods: a user's sessions on a login host are in a network, a PID and a mount namespace of their own.

In etcd a login pod is like a job on one node, with an id that no job of Slurm's has (`numbers`), so that addresses,
ways, names and rules come about as for any pod. What it is on the host:

pods      makes it at the first session, and removes it after the last; the daemon's operations
place     its folder below /run, by which a daemon that begins again finds pods and sessions
services  the Services of the user's cluster in it
followers those are followed by a program with other rights
orders    what the daemon and that program say to one another
numbers   ids, and the ports that are a pod's
rules     what the packet filter has more for it

Its first process is a unit of systemd's (`isthmus-login@<uid>`), which outlives the daemon; src/spank/login has the
program, and the PAM module that moves sessions into it.
"""
