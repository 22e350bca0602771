"""What cloud-init does at a server's first boot: name, root's key, disk of the shared home. No secret is in it."""

from __future__ import annotations

from typing import Any

import yaml

# The home's volume is the second disk, whatever the hypervisor calls it; the first one bears the root file system.
HOME_LABEL = "isthmus-home"
_DISKS = "/dev/vdb /dev/sdb /dev/xvdb"
# Only an empty disk is formatted: a volume that a former controller had keeps its homes.
_FORMAT = (
    f"for disk in {_DISKS}; do [ -b $disk ] || continue; blkid $disk >/dev/null || mkfs.ext4 -q -L {HOME_LABEL} $disk; "
    "break; done"
)
_MOUNT = f"LABEL={HOME_LABEL} /home ext4 nodev,nosuid,nofail,x-systemd.device-timeout=60 0 2"


def user_data(node: str, *, home: bool) -> str:
    """Return a node's cloud-config; Ansible and a joining node do the rest.

    Args:
        node: host name.
        home: whether the shared home's volume is at this node.
    """
    # Ansible comes as root, with the key pair's key; nobody has a password.
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
    return f"#cloud-config\n{yaml.safe_dump(config, sort_keys=False)}"
