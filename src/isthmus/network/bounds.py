"""Valid identifiers and names, for etcd's values and the socket's messages alike."""

from __future__ import annotations

import re

from isthmus.model.network import LABEL_MAX

# uid_t without its last value, which means "nobody in particular" to the kernel (chown(2)).
UID_MAX = 2**32 - 2
# Slurm's ids below its reserved ones (slurm.h, NO_VAL); the upper bits name a cluster of a federation.
JOB_MAX = 2**32 - 3
# Login pods are kept like jobs. Their ids are those of a federation's 63rd cluster, which no site has.
LOGIN_FIRST = 63 << 26
# The kernel's own limit (proc_sys_kernel(5), pid_max).
PID_MAX = 2**22
PORT_MAX = 2**16 - 1
# 24 bits, and 0 is what a device without one has (RFC 7348, 5).
VNI_MAX = 2**24 - 1
# slurmctld's own limit on a job's name.
JOB_NAME_MAX = 1024
# A host name's (RFC 1035, 2.3.4); login names may be as long as an address in a directory.
NODE_NAME_MAX = 253
USER_NAME_MAX = 256
RESERVATION_MAX = LABEL_MAX
# 576 bytes, which every host takes (RFC 791, 3.1), and 50 of VXLAN; at most the loopback's.
MTU_MIN, MTU_MAX = 626, 65536

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_node_name(text: str) -> bool:
    """Return whether a text can be a node's name, or a cluster's: letters, digits, `.`, `_`, `-`, no path in a key."""
    return len(text) <= NODE_NAME_MAX and _NODE.fullmatch(text) is not None


def is_user_name(text: str) -> bool:
    """Return whether a text can be a login name: printable, no spaces; directories have more than POSIX's letters."""
    return 0 < len(text) <= USER_NAME_MAX and text.isprintable() and " " not in text
