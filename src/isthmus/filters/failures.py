"""A failed task's error in few lines, for the end of a long run's output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Limits of a loop's items and of a program's output; the whole is printed where the task failed.
_ITEMS = 3
_LINES = 30


def summary(host: str, task: str, result: Mapping[str, Any]) -> str:
    """Return the text.

    Args:
        host: where it failed.
        task: its name.
        result: what the module returned; of a censored one only that it is censored.
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
