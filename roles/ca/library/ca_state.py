"""The module `ca_state`: which authority a host trusts; nothing is changed."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

AUTHORITY = Path("/etc/isthmus/ca.crt")
# What the system's programs read, made by update-ca-certificates as its last step.
TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")


def text(path: Path) -> str:
    """Return what a file holds, "" where there is none."""
    return path.read_text(errors="replace") if path.is_file() else ""


def main() -> None:
    """Return the state."""
    module = AnsibleModule({}, supports_check_mode=True)
    authority, trusted = text(AUTHORITY), text(TRUSTED)
    is_trusted = bool(authority.strip()) and authority.strip() in trusted
    module.exit_json(changed=False, authority=authority, trusted=is_trusted)


if __name__ == "__main__":
    main()
