"""The module `network_state`: all that role network must know of a host before it changes anything; it changes nothing.

What a program does not answer is "": a new host has neither Slurm's commands nor the daemon.
"""

from __future__ import annotations

import grp
import pwd
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

TUN = Path("/dev/net/tun")
RESOLV_CONF = Path("/etc/resolv.conf")
IPV6 = Path("/proc/sys/net/ipv6")
FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
LIST_MAX = 65536
FOLDER = {
    "path": {"type": "path", "required": True},
    "group": {"type": "str", "required": True},
    "mode": {"type": "str", "required": True},
}
ARGUMENTS = {
    "slurm": {"type": "path", "required": True},
    "prefix": {"type": "path", "required": True},
    "asks_slurm": {"type": "bool", "default": False},
    "server": {"type": "str", "default": ""},
    "openmpi": {"type": "path", "required": True},
    "drivers": {"type": "dict", "default": {}},
    "sysctl": {"type": "path", "required": True},
    "user": {"type": "str", "required": True},
    "pam": {"type": "path", "required": True},
    "wireguard": {"type": "path", "required": True},
    "asks_wireguard": {"type": "bool", "default": False},
    "plugin_list": {"type": "dict", "default": {}},
    "folders": {"type": "list", "elements": "dict", "options": FOLDER, "required": True},
}


def text(path: Path) -> str:
    """A file's text, "" for none."""
    return path.read_text() if path.is_file() else ""


def link(path: Path) -> str:
    """Where a link leads, "" for none."""
    return str(path.readlink()) if path.is_symlink() else ""


def is_known(name: str) -> bool:
    """Return whether there is an account of a name."""
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def folder_is_right(wanted: Mapping[str, str]) -> bool:
    """Return whether a folder is there, root's, with its group and mode."""
    try:
        found, group = Path(wanted["path"]).lstat(), grp.getgrnam(wanted["group"])
    except (OSError, KeyError):
        return False
    rights = found.st_uid, found.st_gid, found.st_mode & 0o7777
    return stat.S_ISDIR(found.st_mode) and rights == (0, group.gr_gid, int(wanted["mode"], 8))


def rights(path: Path) -> list[int] | None:
    """Whose a path is and its mode, not of what a link leads to; None for none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return [found.st_uid, found.st_mode]


def plugin_list(asked: Mapping[str, str]) -> dict[str, Any]:
    """What leads to an admin's list of network plugins and to their programs, whose it is, and the list itself."""
    if not asked:
        return {}
    folder, plugins = Path(asked["folder"]), Path(asked["plugins"])
    path = folder / asked["list"]
    way = [*reversed(folder.parents), folder, path, *reversed(plugins.parents), plugins]
    known = {str(each): found for each in way if (found := rights(each))}
    programs = sorted(plugins.iterdir()) if plugins.is_dir() else []
    is_file = str(path) in known and stat.S_ISREG(known[str(path)][1])
    return {
        "list": str(path),
        "plugins": str(plugins),
        "last": [str(folder), str(plugins)],
        "way": known,
        "programs": {str(each): found for each in programs if (found := rights(each))},
        # One character more than the daemon reads is enough to refuse it.
        "text": path.read_bytes()[: LIST_MAX + 1].decode(errors="replace") if is_file else None,
    }


def folders_are_right(folders: Iterable[Mapping[str, str]]) -> bool:
    """Return whether all of them are."""
    return all(folder_is_right(folder) for folder in folders)


def forwards(sysctl: Path) -> bool:
    """Return whether packets are handed on, now and after a boot."""
    return text(FORWARD).strip() == "1" and "net.ipv4.ip_forward=1" in text(sysctl).splitlines()


def has_tun() -> bool:
    """Return whether a program can make interfaces here."""
    try:
        return stat.S_ISCHR(TUN.stat().st_mode)
    except OSError:
        return False


class Asker:
    """Runs programs on this host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def answer(self, *command: str) -> str:
        """What a program prints, "" where it is not there or fails."""
        if "/" in command[0] and not Path(command[0]).exists():
            return ""
        code, out, _ = self.module.run_command(list(command))
        return "" if code else str(out).strip()

    def addresses(self, server: str) -> str:
        """Return getent's answer for a name; one that cannot be resolved ends the task."""
        output = self.answer("getent", "ahosts", server) if server else ""
        if server and not output:
            self.module.fail_json(
                msg=f"{server} cannot be resolved here; correct base_home_nfs_source, or the host's DNS"
            )
        return output

    def wireguard(self, unit: Path, asks: bool) -> dict[str, Any]:
        """What there is of it: the program's unit, and whether kernel and host could have a device.

        A device in a network namespace that ends with the command loads the module, and leaves nothing.
        """
        found: dict[str, Any] = {"unit": unit.exists()}
        if asks:
            tried = ["unshare", "--net", "ip", "link", "add", "iwtry", "type", "wireguard"]
            code, _, error = self.module.run_command(tried)
            found |= {"kernel": code == 0, "error": str(error).strip(), "tun": has_tun()}
        return found

    def state(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """All of it, by name."""
        commands = f"{asked['slurm']}/bin"
        return {
            "slurm": self.answer(f"{commands}/sinfo", "--version"),
            "slurm_config": self.answer(f"{commands}/scontrol", "show", "config") if asked["asks_slurm"] else "",
            "status": self.answer(f"{asked['prefix']}/bin/isthmus", "network", "status", "--json"),
            "resolved": self.answer("systemctl", "is-active", "systemd-resolved") == "active",
            "servers": self.addresses(asked["server"]),
            "resolv_conf": link(RESOLV_CONF),
            "openmpi": text(Path(asked["openmpi"])),
            "drivers": sorted(driver for driver, mark in asked["drivers"].items() if Path(mark).exists()),
            "ipv6": IPV6.is_dir(),
            "forwards": forwards(Path(asked["sysctl"])),
            "has_user": is_known(asked["user"]),
            "pam": text(Path(asked["pam"])),
            "wireguard": self.wireguard(Path(asked["wireguard"]), asked["asks_wireguard"]),
            "plugin_list": plugin_list(asked["plugin_list"]),
            "folders": folders_are_right(asked["folders"]),
        }


def main() -> None:
    """Look."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    module.exit_json(changed=False, **Asker(module).state(module.params))


if __name__ == "__main__":
    main()
