"""The module `local_survey`: all that the role asks the deployer and podman before it changes anything.

It decides nothing but which SSH keys are lacking; filters read the rest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

OPTIONS = {
    "cluster": {"type": "str", "required": True},
    "image": {"type": "str", "required": True},
    "keys": {"type": "dict", "required": True},
}
PARSED = {
    "info": ["podman", "info", "--format", "json"],
    "routes": ["ip", "-json", "-4", "route"],
    "links": ["ip", "-json", "-4", "link"],
}
KEY_MODE = 0o600


def is_whole(mode: int, comment: str, public: str, derived: str) -> bool:
    """Return whether a key and its public half are as the role makes them.

    Args:
        mode: of the private key.
        comment: of the public key.
        public: the public half's file.
        derived: what `ssh-keygen -y` makes of the private key.
    """
    kind, _, rest = public.strip().partition(" ")
    blob, _, output = rest.partition(" ")
    return (
        mode & 0o777 == KEY_MODE and kind == "ssh-ed25519" and output == comment and derived.split()[:2] == [kind, blob]
    )


def cgroups(containers: Sequence[dict[str, Any]], proc: Path = Path("/proc")) -> str:
    """The control groups of the processes in podman's records that exist."""
    found = []
    for container in containers:
        try:
            found.append((proc / str(container["Pid"]) / "cgroup").read_text())
        except OSError:
            continue  # podman is wrong, which `local_plan` finds
    return "".join(found)


def watchers(proc: Path = Path("/proc")) -> dict[str, int]:
    """How many inotify instances this account has, in its containers too, and may have (inotify(7))."""
    used = 0
    for link in proc.glob("[0-9]*/fd/*"):
        try:
            used += os.readlink(link) == "anon_inode:inotify"
        except OSError:
            continue  # closed meanwhile, or another account's
    return {"used": used, "limit": int((proc / "sys/fs/inotify/max_user_instances").read_text())}


class Survey:
    """Asks this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def ask(self, argv: Sequence[str]) -> str:
        """Return what a command prints; it must succeed."""
        try:
            return str(self.module.run_command(list(argv), check_rc=True, handle_exceptions=False)[1])
        except OSError as error:
            self.module.fail_json(msg=f"{argv[0]} cannot be run: {error}; run without --check once, which installs it")

    def exists(self, kind: str, name: str) -> bool:
        """Return whether podman has a network or a volume."""
        return self.module.run_command(["podman", kind, "exists", name])[0] == 0

    def lacks(self, key: Path, comment: str) -> bool:
        """Return whether a key has to be made, or made whole."""
        public = key.with_name(f"{key.name}.pub")
        if not key.is_file() or not public.is_file():
            return True
        derived = self.module.run_command(["ssh-keygen", "-y", "-f", str(key)])[1]
        return not is_whole(key.stat().st_mode, comment, public.read_text(), derived)


def main() -> None:
    """Ask."""
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    survey, cluster = Survey(module), module.params["cluster"]
    label = f"label=isthmus.cluster={cluster}"
    containers = json.loads(survey.ask(["podman", "ps", "--all", "--format", "json", "--filter", label]))
    images = [
        "podman",
        "images",
        "--format",
        "{{.Repository}}:{{.Tag}}",
        "--filter",
        f"reference={module.params['image']}",
    ]
    keys = module.params["keys"].items()
    module.exit_json(
        changed=False,
        **{name: json.loads(survey.ask(argv)) for name, argv in PARSED.items()},
        status=Path("/proc/self/status").read_text(),
        limits=Path("/proc/self/limits").read_text(),
        containers=containers,
        cgroups=cgroups(containers),
        watchers=watchers(),
        network=survey.exists("network", cluster),
        home=survey.exists("volume", f"{cluster}-home"),
        images=survey.ask(images).split(),
        keys_lacking=[path for path, comment in keys if survey.lacks(Path(path), comment)],
        uid=str(os.getuid()),
        gid=str(os.getgid()),
    )


if __name__ == "__main__":
    main()
