"""reference/packages.md: every package and module of `isthmus`, by the first line of its docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from handbook.markdown import code, page, table
from handbook.source import modules


def text(root: Path) -> str:
    """Return the page."""
    return page(
        "# Packages",
        "What each package and module of `src/isthmus` is for, from the first line of its own docstring."
        " [Architecture](../explanation/architecture.md) says which may use which.",
        *(
            page(f"## {name}", said, table(("module", "what it is for"), held)).strip()
            for name, said, held in _packages(root)
        ),
    )


def _packages(root: Path) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    source = root / "src"
    known = {path: ast.get_docstring(module) or "" for path, module in modules(root, ".")}
    for path in sorted(path.parent for path in known if path.name == "__init__.py"):
        held = [(code(one.stem), _first(known[one])) for one in sorted(path.glob("*.py")) if one.name != "__init__.py"]
        if held:
            yield ".".join(path.relative_to(source).parts), _first(known[path / "__init__.py"]), held


def _first(docstring: str) -> str:
    return " ".join(docstring.partition("\n\n")[0].split())
