"""`make generate`: files of the tree that repeat what another says, written from that one. `tests/repo` compares.

roles/*/defaults/main.yml          the defaults in the role's argument_specs, which Ansible checks and never applies
choices of drivers' variables      the members of `isthmus.model.network.Driver`
choices of artifacts_programs      the programs of artifacts.yml
src/spank/driver_list.h            the same, for the SPANK plugin
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from isthmus.model.network import Driver

ROOT = Path(__file__).parents[2]
HEADER = "src/spank/driver_list.h"
# Role and variable -> whether it may be `none`.
CHOICES = {
    ("network", "network_drivers"): False,
    ("network", "network_default_driver"): True,
    ("kubernetes", "kubernetes_driver"): True,
}
PROGRAMS = "artifacts", "artifacts_programs"


def files(root: Path) -> dict[str, str]:
    """Return each generated file with the content it should have."""
    specs = {path.parts[-3]: path.read_text() for path in sorted((root / "roles").glob("*/meta/argument_specs.yml"))}
    table = (root / "artifacts.yml").read_text()
    specs = {role: programs(role, chosen(role, text), table) for role, text in specs.items()}
    found = {f"roles/{role}/meta/argument_specs.yml": specs[role] for role, _ in (*CHOICES, PROGRAMS)}
    found |= {f"roles/{role}/defaults/main.yml": text for role, spec in specs.items() if (text := defaults(spec))}
    return found | {HEADER: header()}


def defaults(spec: str) -> str:
    """Return the variables file of a role with argument_specs; empty without defaults."""
    lines: dict[str, str] = {}
    for name, option in _options(spec):
        for key, value in option.value:
            if key.value == "default" and name not in lines:
                lines[name] = _assignment(name, spec[value.start_mark.index : value.end_mark.index], value)
    return "---\n" + "".join(lines.values()) if lines else ""


def chosen(role: str, spec: str) -> str:
    """Return argument_specs with the drivers as choices of the variables that name one."""
    for (owner, variable), has_none in CHOICES.items():
        names = [str(driver) for driver in Driver if has_none or driver is not Driver.NONE]
        if owner == role:
            text = rf"(?P<head>\n +{variable}:.*?choices: )\[[^\]]*\]"
            spec = re.sub(text, rf"\g<head>[{', '.join(names)}]", spec, count=1, flags=re.DOTALL)
    return spec


def programs(role: str, spec: str, table: str) -> str:
    """Return argument_specs with the programs of the table as choices of the variable that names some."""
    owner, variable = PROGRAMS
    if role != owner:
        return spec
    names = [name for release in yaml.safe_load(table)["releases"].values() for name in release["programs"]]
    text = rf"(?P<head>\n +{variable}:.*?\n(?P<indent> +)choices:\n)(?: +- [^\n]*\n)+"
    return re.sub(
        text,
        lambda found: found["head"] + "".join(f"{found['indent']}  - {name}\n" for name in names),
        spec,
        count=1,
        flags=re.DOTALL,
    )


def header() -> str:
    """Return the drivers as the SPANK plugin knows them: `none` is 0."""
    named = [driver for driver in Driver if driver is not Driver.NONE]
    ids = [f'    X(DRIVER_{driver.name}, "{driver}")' for driver in (Driver.NONE, *named)]
    return "\n".join(
        [
            "/* Made by `make generate` from src/isthmus/model/network.py. */",
            "#pragma once",
            "",
            "#define DRIVER_LIST(X) \\",
            " \\\n".join(ids),
            "",
            f'#define DRIVER_CHOICES "{", ".join(named)} or {Driver.NONE}"',
            f'#define DRIVER_ARGUMENT "[{"|".join([*named, Driver.NONE])}]"',
            "#define DRIVER_USAGE \\",
            *(f'    "{driver.usage} ({_words(driver)}), " \\' for driver in named),
            f'    "or {Driver.NONE.usage} ({Driver.NONE})"',
            "",
        ]
    )


def _words(driver: Driver) -> str:
    return f"{driver}, also without a value" if driver is Driver.PRIVATE else str(driver)


def write(root: Path) -> list[str]:
    """Write what differs; return its paths."""
    changed = [path for path, text in files(root).items() if _read(root / path) != text]
    for path in changed:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(files(root)[path])
    return changed


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _options(spec: str) -> Iterator[tuple[str, Any]]:
    """Give every option of every entry point, as YAML nodes: their places in the text are what defaults keep."""
    for entries in _values(yaml.compose(spec), "argument_specs"):
        for _, entry in entries.value:
            for options in _values(entry, "options"):
                yield from ((key.value, option) for key, option in options.value)


def _values(node: Any, name: str) -> Iterator[Any]:
    yield from (value for key, value in node.value if key.value == name)


def _assignment(name: str, text: str, value: Any) -> str:
    """Return a line, or a block that begins below its name."""
    if getattr(value, "flow_style", None) is not False or not value.value:
        return f"{name}: {text.strip()}\n"
    block = textwrap.dedent(" " * value.start_mark.column + text.rstrip())
    return f"{name}:\n{textwrap.indent(block, '  ')}\n"


if __name__ == "__main__":
    for path in write(ROOT):
        print(f"wrote {path}")
