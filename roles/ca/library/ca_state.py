"""The module `ca_state`: whom a host believes; nothing is changed."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

AUTHORITY = Path("/etc/isthmus/ca.crt")
# What the system's programs read, made by update-ca-certificates as its last step.
BELIEVED = Path("/etc/ssl/certs/ca-certificates.crt")


def text(path: Path) -> str:
    """Return what a file holds, "" where there is none."""
    return path.read_text(errors="replace") if path.is_file() else ""


def main() -> None:
    """Tell it."""
    module = AnsibleModule({}, supports_check_mode=True)
    authority, believed = text(AUTHORITY), text(BELIEVED)
    is_believed = bool(authority.strip()) and authority.strip() in believed
    module.exit_json(changed=False, authority=authority, believed=is_believed)


if __name__ == "__main__":
    main()
