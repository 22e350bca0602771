"""Callback `filters_once`: all filters and tests are loaded before the first task, once and not in each worker.

Ansible forks a worker for each task of each host, and the first filter that a worker meets makes it load every filter
plugin there is: 0.1 s and more, again and again. What the parent has loaded before, all workers inherit.
"""

from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import filter_loader, test_loader


class CallbackModule(CallbackBase):
    """What Ansible looks for in this file."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "filters_once"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Load them."""
        filter_loader.get("ansible.builtin.first")
        test_loader.get("ansible.builtin.defined")
