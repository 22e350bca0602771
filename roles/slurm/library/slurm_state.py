"""The module `slurm_state`: all that role slurm must know of a host before it changes anything; it changes nothing."""

from __future__ import annotations

import grp
import json
import pwd
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.dpkg import of_slurm, question, slurm_programs

CONF = Path("/etc/slurm")
ALTERNATIVES = Path("/etc/alternatives")
PREFERENCES = Path("/etc/apt/preferences.d/isthmus-slurm")
HARDWARE = Path("/var/lib/isthmus/slurm/hardware.json")
OPENMPI = Path("/etc/openmpi/openmpi-mca-params.conf")
# A node that joined by itself has the packages of its image, which is made again for others.
JOINED = Path("/var/lib/isthmus/node/joined.json")


def protected(path: Path) -> str:
    """Return a file's owner, group, mode and sha256, "" for none: whether a secret is right, not what it is."""
    try:
        status, content = path.stat(), path.read_bytes()
    except OSError:
        return ""
    owner = _name(lambda: pwd.getpwuid(status.st_uid).pw_name, status.st_uid)
    group = _name(lambda: grp.getgrgid(status.st_gid).gr_name, status.st_gid)
    return f"{owner}:{group} {status.st_mode & 0o7777:04o} {sha256(content).hexdigest()}"


def alternative(name: str) -> str:
    """What an alternative stands for; "" where there is none."""
    try:
        return str((ALTERNATIVES / name).readlink())
    except OSError:
        return ""


def text(path: Path) -> str:
    """A file's text, "" for none."""
    return path.read_text() if path.is_file() else ""


def packages(output: str) -> dict[str, Any]:
    """Version of the host's Slurm, "" for none, and those of its packages that apt may move."""
    movable = {} if JOINED.exists() else of_slurm(output)
    return {
        "version": min((package.version for package in slurm_programs(output).values()), default=""),
        "loose": sorted(name for name, package in movable.items() if not package.held),
    }


def hardware(path: Path) -> dict[str, Any]:
    """What the controller has recorded of its nodes; nothing on other hosts.

    Raises:
        ValueError: it is no such record.
    """
    try:
        return dict(json.loads(text(path) or "{}"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is no record of nodes ({error}); remove it, and start nodes that are down") from error


def _name(lookup: Callable[[], str], number: int) -> str:
    try:
        return lookup()
    except KeyError:
        return str(number)


def state(secrets: Iterable[str], alternatives: Iterable[str], output: str) -> dict[str, Any]:
    """All of it, by name; `output` is dpkg's answer."""
    return {
        **packages(output),
        "pinned": PREFERENCES.exists(),
        "live": (CONF / "slurmdbd.conf").exists(),
        "secrets": {path: protected(Path(path)) for path in secrets},
        "alternatives": {name: alternative(name) for name in alternatives},
        "openmpi": text(OPENMPI),
        "hardware": hardware(HARDWARE),
    }


def main() -> None:
    """Look."""
    names = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule({"secrets": names, "alternatives": names}, supports_check_mode=True)
    asked = question()
    _, output, _ = module.run_command(asked) if module.get_bin_path(asked[0]) else (0, "", "")
    try:
        found = state(module.params["secrets"], module.params["alternatives"], output)
    except ValueError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
