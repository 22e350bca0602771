"""Options of modules of Ansible that know a site's accounts: the one that looks at a host, and the one that acts."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "str", "required": True}
_GROUP = {"name": _TEXT, "gid": {"type": "int"}}
_USER = {
    "name": _TEXT,
    "uid": {"type": "int", "required": True},
    "groups": {"type": "list", "elements": "str", "required": True},
    "password": {"type": "str", "required": True, "no_log": True},
    "shell": _TEXT,
    "comment": {"type": "str", "default": ""},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "groups": {"type": "list", "elements": "dict", "options": _GROUP, "default": []},
    "users": {"type": "list", "elements": "dict", "options": _USER, "default": []},
    "absent": {"type": "list", "elements": "str", "default": []},
}
