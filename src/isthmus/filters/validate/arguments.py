"""Types, choices and keys of the roles' arguments, checked by Ansible's own validator from their argument_specs.

Each role checks its own when it starts; by then earlier roles have changed hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from isthmus.filters.validate.site import Site


def argument_problems(site: Site, *roles: str) -> Iterator[str]:
    """Yield values that a role would refuse; of all roles, or of the named ones.

    Only what the inventory sets is read, and only what it sets for the whole cluster. A value with an unknown
    part is left to its role: what is missing may be that part.
    """
    checked: set[str] = set()
    for role in roles or site.role_specs:
        for name, option in _options(site.role_specs.get(role, {})):
            if name not in checked and (value := site.whole(name)) is not None:
                checked.add(name)
                spec = {name: {**option, "required": False}}
                remedy = f"write it as roles/{role}/meta/argument_specs.yml says"
                for error in ArgumentSpecValidator(spec).validate({name: value}).error_messages:
                    # Ansible's message starts with "Unsupported parameters", which modules add themselves.
                    kind = "unknown key " if error.startswith(f"{name}.") else ""
                    yield site.problem(kind + error.rstrip("."), remedy, name)


def _options(specs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for entry in (specs.get("argument_specs") or {}).values():
        yield from (entry.get("options") or {}).items()
