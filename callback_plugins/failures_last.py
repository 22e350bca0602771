"""Callback `failures_last`: after everything else, what made hosts fail; nothing when none did."""

import atexit
from typing import Any

from ansible.executor.stats import AggregateStats
from ansible.executor.task_result import CallbackTaskResult
from ansible.plugins.callback import CallbackBase

from isthmus.filters.failures import summary


class CallbackModule(CallbackBase):
    """What Ansible looks for in this file."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "failures_last"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Of each host the last one: an earlier one was rescued.
        self._last: dict[str, tuple[str, dict[str, Any]]] = {}

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        """Keep a failure."""
        if not ignore_errors:
            self._keep(result)

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        """Keep that a host was not reached."""
        self._keep(result)

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        """Write the failures."""
        failed = {*stats.failures, *stats.dark}
        for host, (task, result) in self._last.items():
            if host in failed:
                # What collections' callbacks say at the end comes after ours; the process's end comes after theirs.
                atexit.register(self._display.display, summary(host, task, result), color="red")

    def _keep(self, result: CallbackTaskResult) -> None:
        self._last[result.host.get_name()] = (result.task_name, dict(result.result))
