"""Pieces of Markdown for pages that programs write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells may have several lines and bars."""
    lines = [head, ["---"] * len(head), *([_cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: object) -> str:
    """Return a word as code."""
    return f"`{text}`" if str(text) else ""


def block(text: str, language: str = "text") -> str:
    """Return a fenced block."""
    return f"```{language}\n{text.strip(chr(10))}\n```"


def page(*parts: str) -> str:
    """Return a page of its parts, those that are empty left out."""
    return "\n\n".join(part for part in parts if part) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
