"""Options of modules of Ansible that ask etcd: where it is, and the certificate that opens a connection."""

from __future__ import annotations

from typing import Any

OPTIONS: dict[str, dict[str, Any]] = {
    "endpoints": {"type": "list", "elements": "str", "required": True},
    "ca": {"type": "path", "required": True},
    "certificate": {"type": "path", "required": True},
    "key": {"type": "path", "required": True, "no_log": False},
}
