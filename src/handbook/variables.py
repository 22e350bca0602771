"""reference/variables.md: every variable of every role, from the roles' argument_specs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from handbook.markdown import code, page, table

Spec = Mapping[str, Any]
# Ansible's markup in descriptions: C(code), V(value), I(name), O(option).
_MARKUP = re.compile(r"\b[CVIO]\(([^()]*(?:\([^()]*\)[^()]*)*)\)")


def roles(root: Path) -> dict[str, Spec]:
    """Return role -> its entry points."""
    files = sorted((root / "roles").glob("*/meta/argument_specs.yml"))
    return {path.parts[-3]: yaml.load(path.read_text(), Loader=yaml.CSafeLoader)["argument_specs"] for path in files}


def text(root: Path) -> str:
    """Return the page."""
    return page(
        "# Variables",
        "All variables of the roles that an inventory may set, each with its default, made from the files"
        " `roles/*/meta/argument_specs.yml` by which Ansible checks them. A value that does not fit ends a run before"
        " anything is changed.",
        *(_role(name, entries) for name, entries in roles(root).items()),
    )


def _role(name: str, entries: Mapping[str, Spec]) -> str:
    known: dict[str, Spec] = {}
    for entry in entries.values():
        known.update({key: one for key, one in (entry.get("options") or {}).items() if key not in known})
    first = next(iter(entries.values()))
    described = _words([f"{first['short_description']}.", *_lines(first.get("description"))])
    rows = [row for key, one in known.items() for row in _rows(key, one)]
    return page(f"## {name}", described, table(("variable", "type", "default", "what it is for"), rows)).strip()


def _rows(name: str, one: Spec) -> Iterator[tuple[str, str, str, str]]:
    kind = one.get("type", "str") + (f" of {one['elements']}" if "elements" in one else "")
    default = "needed" if one.get("required") else _value(one["default"]) if "default" in one else ""
    chosen = f" One of {', '.join(code(_plain(each)) for each in one['choices'])}." if one.get("choices") else ""
    yield code(name), kind, default, _words(_lines(one.get("description"))) + chosen
    for key, inner in (one.get("options") or {}).items():
        yield from _rows(f"{name}[].{key}" if kind.startswith("list") else f"{name}.{key}", inner)


def _value(default: object) -> str:
    return code(_plain(default)) or "empty"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _lines(described: object) -> list[str]:
    return described if isinstance(described, list) else [str(described)] if described else []


def _words(lines: list[str]) -> str:
    return _MARKUP.sub(lambda found: code(found[1]), " ".join(lines)).replace("<", "&lt;")
