"""`$(NAME)` in commands and variables, by Kubernetes' rules (third_party/forked/golang/expansion).

`$$` is `$`; `$(NAME)` of an unknown name stays as it is. It is expanded twice. The kubelet puts in what it knows and
escapes all other text (`expand_known`); what only the compute node knows stays `$(NAME)`, and the supervisor expands
exactly those (`expand`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.podproto.plan import Variable

_TOKEN = re.compile(r"\$\$|\$\((?P<name>[^)]*)\)")
_NEEDS_ESCAPE = re.compile(r"\$(?=[$(])|\$$")


def escape(text: str) -> str:
    """Return what expands to this text."""
    return text.replace("$", "$$") if _NEEDS_ESCAPE.search(text) else text


def expand_known(text: str, known: Mapping[str, str]) -> str:
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


def constant(text: str) -> str | None:
    """Return what an escaped text stands for; None when that is known on the compute node only."""
    if any(match["name"] is not None for match in _TOKEN.finditer(text)):
        return None
    return text.replace("$$", "$")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Return the text with all known names filled in."""

    def fill(match: re.Match[str]) -> str:
        return "$" if match["name"] is None else known.get(match["name"], match[0])

    return _TOKEN.sub(fill, text)


def environment(variables: Iterable[Variable], facts: Mapping[str, str]) -> dict[str, str]:
    """Return a container's variables; each may name those before it, the last of a name wins.

    Args:
        variables: of a plan.
        facts: what only this node knows, e.g. pod_ip.
    """
    known: dict[str, str] = {}
    for variable in variables:
        known[variable.name] = facts[variable.fact] if variable.fact else expand(variable.value or "", known)
    return known
