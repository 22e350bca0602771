"""cloud-init's user data for a server's first boot: name, root's key, disk of the shared home. It has no secrets.

Except for nodes that Slurm starts, which join by themselves: they get a single-use token for their name that expires
within minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

# The home's volume is the second disk, whatever the hypervisor calls it; the first has the root file system.
HOME_LABEL = "isthmus-home"
# Read by isthmus-join.service in the image.
JOIN_FILE = "/etc/isthmus/join"
_DISKS = "/dev/vdb /dev/sdb /dev/xvdb"
# Only an empty disk is formatted: the volume of a former controller keeps its homes.
_FORMAT = (
    f"for disk in {_DISKS}; do [ -b $disk ] || continue; blkid $disk >/dev/null || mkfs.ext4 -q -L {HOME_LABEL} $disk; "
    "break; done"
)
_MOUNT = f"LABEL={HOME_LABEL} /home ext4 nodev,nosuid,nofail,x-systemd.device-timeout=60 0 2"


@dataclass(frozen=True)
class Join:
    """How a node joins by itself.

    Attributes:
        server: host and port of isthmus-joind.
        key: public key of root's SSH login.
        token: for this node.
    """

    server: str
    key: str
    token: str = field(repr=False)


def user_data(node: str, *, home: bool = False, join: Join | None = None) -> str:
    """Return a node's cloud-config.

    Args:
        node: host name.
        home: whether the shared home's volume is attached to this node.
        join: for a node that no playbook visits.
    """
    # Ansible logs in as root with the key pair's key; there are no passwords.
    config: dict[str, Any] = {
        "hostname": node,
        "preserve_hostname": False,
        "manage_etc_hosts": False,
        "disable_root": False,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_genkeytypes": ["ed25519"],
        "package_update": False,
    }
    if home:
        config["bootcmd"] = [["sh", "-c", _FORMAT]]
        words = _MOUNT.split()
        config["mounts"] = [words]
    if join:
        text = f"TOKEN={join.token}\nSERVER={join.server}\nNAME={node}\n"
        config["write_files"] = [{"path": JOIN_FILE, "permissions": "0600", "content": text}]
        config["ssh_authorized_keys"] = [join.key]
    return f"#cloud-config\n{yaml.safe_dump(config, sort_keys=False)}"
