"""Callback `task_counts`: how often each role went to each host; into the file that ISTHMUS_TASK_COUNTS names.

Counts are stable where times are not: a task that was skipped, or that ran on the deployer alone as an assertion
does, is none; a loop is as many as it had items.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from ansible.executor.stats import AggregateStats
from ansible.executor.task_result import CallbackTaskResult
from ansible.plugins.callback import CallbackBase

from isthmus.filters.trips import trips


class CallbackModule(CallbackBase):
    """What Ansible looks for in this file."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_counts"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file = os.environ.get("ISTHMUS_TASK_COUNTS", "")
        self.disabled = not self._file
        self._counts: dict[str, Counter[str]] = {}

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        """Count a task that succeeded."""
        self._count(result)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        """Count one that failed."""
        del ignore_errors
        self._count(result)

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        """Write the file."""
        del stats
        Path(self._file).write_text(json.dumps(self._counts, indent=1, sort_keys=True) + "\n")

    def _count(self, result: CallbackTaskResult) -> None:
        role = result.task._role
        if role is not None:
            counted = trips(result.task.action, result.result)
            # A delegated task goes to another host; what the deployer does counts for the host that it is about.
            to = result.task.delegate_to or "localhost"
            host = result.host.get_name() if to == "localhost" else to
            self._counts.setdefault(role.get_name(), Counter())[host] += counted
