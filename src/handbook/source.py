"""Reads the code of src/isthmus as text: what it names, it names in constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules(root: Path, *packages: str) -> Iterator[tuple[Path, ast.Module]]:
    """Give the modules of packages of `isthmus`, with their paths."""
    for package in packages:
        for path in sorted((root / "src/isthmus" / package).rglob("*.py")):
            yield path, _parsed(path)


def constant(node: ast.AST | None) -> str:
    """Return a constant text; empty for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
