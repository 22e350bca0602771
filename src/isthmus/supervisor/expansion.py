"""`$(NAME)` in commands and variables, by Kubernetes' rules: `$$` is `$`, an unknown name stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\$\$|\$\(([^)]*)\)")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Return the text with all known names filled in."""

    def fill(match: re.Match[str]) -> str:
        return "$" if match[1] is None else known.get(match[1], match[0])

    return _TOKEN.sub(fill, text)


def environment(variables: list[dict[str, str]], facts: Mapping[str, str]) -> dict[str, str]:
    """Return a container's variables; each may name those before it, the last of a name wins.

    Args:
        variables: {name, value} or {name, fact}.
        facts: what only this node knows, e.g. pod_ip.
    """
    known: dict[str, str] = {}
    for variable in variables:
        given = variable.get("fact")
        known[variable["name"]] = facts[given] if given else expand(variable["value"], known)
    return known
