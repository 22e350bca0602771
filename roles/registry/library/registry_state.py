"""The module `registry_state`: all that role registry must know of its host before it changes anything."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PROGRAMS = (Path("/usr/bin/docker-registry"), Path("/usr/bin/skopeo"), Path("/usr/sbin/nginx"))
NGINX_RUNS = Path("/run/nginx.pid")
NGINX_UNIT = Path("/etc/systemd/system/nginx.service")


def is_there(account: str) -> bool:
    """Return whether an account exists."""
    try:
        pwd.getpwnam(account)
    except KeyError:
        return False
    return True


def is_idle(runs: Path, unit: Path) -> bool:
    """Return whether nobody uses the package's own nginx.service: it is masked, or neither runs nor was changed."""
    if os.path.lexists(unit):
        return unit.is_symlink() and str(unit.readlink()) == "/dev/null"
    return not runs.exists()


def main() -> None:
    """Return which accounts are missing, whether the programs are installed, and nginx.service is idle."""
    options = {"accounts": {"type": "list", "elements": "str", "required": True}}
    module = AnsibleModule(options, supports_check_mode=True)
    lacking = [name for name in module.params["accounts"] if not is_there(name)]
    module.exit_json(
        changed=False,
        ready=not lacking and all(program.exists() for program in PROGRAMS),
        lacking=lacking,
        idle_nginx=is_idle(NGINX_RUNS, NGINX_UNIT),
    )


if __name__ == "__main__":
    main()
