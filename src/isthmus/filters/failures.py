"""What a failed task tells, in few lines: for the end of a long run, where the task itself is far above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A loop's items and a program's last words; the whole is where the task failed.
_ITEMS = 3
_LINES = 30


def summary(host: str, task: str, result: Mapping[str, Any]) -> str:
    """Return the text.

    Args:
        host: where it failed.
        task: its name.
        result: what the module returned; of a censored one only that it is censored is told.
    """
    if "censored" in result:
        return f"FAILED on {host}: {task}\n  {result['censored']}"
    items = [one for one in result.get("results", ()) if one.get("failed")]
    lines = [line for one in items[:_ITEMS] for line in _item(one)] or _said(result)
    more = [f"and {len(items) - _ITEMS} more items"] if len(items) > _ITEMS else []
    return "\n  ".join([f"FAILED on {host}: {task}", *lines, *more])


def _item(result: Mapping[str, Any]) -> list[str]:
    return [f"item {result.get('_ansible_item_label', result.get('item'))!s:.200}:", *_said(result)]


def _said(result: Mapping[str, Any]) -> list[str]:
    message = result.get("msg", "no reason given")
    lines = [str(line) for line in message] if isinstance(message, list) else str(message).splitlines()
    for stream in ("stdout", "stderr"):
        lines += [f"{stream}: {line}" for line in str(result.get(stream) or "").splitlines()[-_LINES:]]
    return lines
