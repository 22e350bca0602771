"""The module `etcd_state`: all that role etcd must know of a host before it changes anything; it changes nothing."""

from __future__ import annotations

import pwd
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.etcd_version import running
from ansible.module_utils.urls import open_url

MEMBER, DEFRAG = "isthmus-etcd.service", "isthmus-etcd-defrag.timer"
USER = "etcd"


def text(path: Path) -> str:
    """A file's text, "" for none."""
    return path.read_text(errors="replace") if path.is_file() else ""


def is_user(name: str) -> bool:
    """Return whether the host knows a user."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def main() -> None:
    """Look."""
    options: dict[str, dict[str, Any]] = {name: {"type": "path", "required": True} for name in ("settings", "data")}
    options["metrics"] = {"type": "str", "required": True}
    module = AnsibleModule(options, supports_check_mode=True)
    _, active, _ = module.run_command(["systemctl", "is-active", MEMBER, DEFRAG])
    runs, defrags = (word == "active" for word in active.split())
    module.exit_json(
        changed=False,
        settings=text(Path(module.params["settings"])),
        has_data=Path(module.params["data"], "member").exists(),
        has_user=is_user(USER),
        runs=runs,
        version=running(module.params["metrics"], open_url),
        defrags=defrags,
    )


if __name__ == "__main__":
    main()
