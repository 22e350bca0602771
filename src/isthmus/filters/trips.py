"""Round trips of Ansible's tasks to their hosts: the cost of a run that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Actions that run on the deployer.
_STAYS = frozenset(
    {
        "artifacts_obtain",
        "assert",
        "debug",
        "fail",
        "group_by",
        "include_role",
        "include_tasks",
        "import_role",
        "import_tasks",
        "meta",
        "set_fact",
        "validate_argument_spec",
    }
)


def trips(action: str, result: Mapping[str, Any]) -> int:
    """Count the round trips of a task.

    Args:
        action: the task's module, with or without its collection.
        result: of the task; a loop's has `results`, one with retries has `attempts`.
    """
    if action.rpartition(".")[2] in _STAYS:
        return 0
    items = result.get("results", [result]) if "ansible_loop_var" in _first(result) else [result]
    return sum(int(item.get("attempts", 1)) for item in items if not item.get("skipped"))


def _first(result: Mapping[str, Any]) -> Mapping[str, Any]:
    items = result.get("results")
    return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else {}
