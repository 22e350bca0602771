"""The module `ca_state`: whom a host believes, and which certificate it has; nothing is changed."""

from __future__ import annotations

import grp
import pwd
import stat
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

AUTHORITY = Path("/etc/isthmus/ca.crt")
# What the system's programs read, made by update-ca-certificates as its last step.
BELIEVED = Path("/etc/ssl/certs/ca-certificates.crt")


def text(path: Path) -> str:
    """Return what a file holds, "" where there is none."""
    return path.read_text(errors="replace") if path.is_file() else ""


def is_kept(path: Path, owner: str, group: str, mode: int) -> bool:
    """Tell whether a file or folder is there, its owner's, with this mode."""
    try:
        found = path.stat()
        ids = (pwd.getpwnam(owner).pw_uid, grp.getgrnam(group).gr_gid)
    except (FileNotFoundError, KeyError):
        return False
    return (found.st_uid, found.st_gid) == ids and stat.S_IMODE(found.st_mode) == mode


def main() -> None:
    """Tell both."""
    options = {name: {"type": "str", "default": "root"} for name in ("owner", "group")}
    module = AnsibleModule({"files": {"type": "path"}} | options, supports_check_mode=True)
    authority, believed = text(AUTHORITY), text(BELIEVED)
    state = {"authority": authority, "believed": bool(authority.strip()) and authority.strip() in believed}
    if module.params["files"]:
        key, certificate = (Path(module.params["files"] + suffix) for suffix in (".key", ".crt"))
        owner, group = module.params["owner"], module.params["group"]
        rc, public, _ = module.run_command(["openssl", "pkey", "-in", str(key), "-pubout"])
        state["public_key"] = "" if rc else public
        state["certificate"] = text(certificate)
        state["kept"] = (
            is_kept(key.parent, "root", "root", 0o755)
            and is_kept(key, owner, group, 0o600)
            and is_kept(certificate, owner, group, 0o644)
        )
    module.exit_json(changed=False, **state)


if __name__ == "__main__":
    main()
