"""Pictures of fences with language mermaid, drawn as SVG while the site is built.

MkDocs Material would have the reader's browser fetch a program that draws them. So drawn, a page needs nothing from
outside, and a picture that cannot be drawn ends the build.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import mmdr
from pymdownx.superfences import SuperFencesException


@cache
def svg(source: str) -> str:
    """Return a diagram's picture.

    Raises:
        ValueError: the text is no diagram of Mermaid's.
    """
    return str(mmdr.render(source).svg())


def fence(source: str, language: str, css_class: str, options: dict[str, Any], md: Any, **others: Any) -> str:
    """Return a fence as HTML; the picture is in the page itself, as ids of several pictures may be equal."""
    del language, options, md, others
    try:
        drawn = base64.b64encode(svg(source).encode()).decode()
    except ValueError as error:  # any other exception would leave the text in the page, without a word
        raise SuperFencesException(f"{error}; correct the diagram that begins with {source[:80]!r}") from error
    return f'<p><img class="{css_class}" alt="diagram" src="data:image/svg+xml;base64,{drawn}"></p>'
