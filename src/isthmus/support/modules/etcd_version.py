"""The version of the etcd that runs on a host, by its own metrics: they need neither a password nor a leader."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

VERSION = re.compile(r'^etcd_server_version\{server_version="([^"]+)"\} 1', re.MULTILINE)
TIMEOUT_S = 5


def running(url: str, open_url: Callable[..., Any]) -> str:
    """Return the version that answers at a URL of metrics, "" for none.

    Args:
        url: "" where no member is looked for.
        open_url: Ansible's.
    """
    if not url:
        return ""
    try:
        found = VERSION.search(open_url(url, use_proxy=False, timeout=TIMEOUT_S).read().decode())
    except OSError:
        return ""
    return found[1] if found else ""
