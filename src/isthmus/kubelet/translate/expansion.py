"""`$(NAME)` in commands and variables, by Kubernetes' rules (third_party/forked/golang/expansion).

`$$` is `$`; `$(NAME)` of an unknown name stays as it is. What is known here is put in; what only the compute node
knows stays `$(NAME)`, and all other text is escaped, so that the supervisor expands exactly those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\$\$|\$\((?P<name>[^)]*)\)")
_NEEDS_ESCAPE = re.compile(r"\$(?=[$(])|\$$")


def escape(text: str) -> str:
    """Return what expands to this text."""
    return text.replace("$", "$$") if _NEEDS_ESCAPE.search(text) else text


def expand(text: str, known: Mapping[str, str]) -> str:
    """Expand a text as far as it can be known.

    Args:
        text: as the pod has it.
        known: name -> escaped value, or `$(NAME)` for what only the compute node knows.

    Returns:
        An escaped text.
    """
    parts: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        name = match["name"]
        parts.append(escape(text[end : match.start()]))
        parts.append(known[name] if name in known else escape("$" if name is None else match[0]))
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def settled(text: str) -> str | None:
    """Return what an escaped text stands for; None when that is known on the compute node only."""
    if any(match["name"] is not None for match in _TOKEN.finditer(text)):
        return None
    return text.replace("$$", "$")
