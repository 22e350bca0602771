"""From one report to the next: what `kubectl describe` should tell. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.events import Kind

Told = tuple[Kind, str, str]


def changes(before: dict[str, Any] | None, after: dict[str, Any]) -> Iterator[Told]:
    """Yield the events between two reports of a pod.

    Args:
        before: the report before; None when this is the first.
        after: the report now.
    """
    error = after.get("error")
    if error and error != (before or {}).get("error"):
        yield Kind.WARNING, error["reason"], error["message"]
    old = (before or {}).get("containers", {})
    for name, now in after.get("containers", {}).items():
        yield from _container(name, old.get(name, {}), now)


def _container(name: str, before: dict[str, Any], now: dict[str, Any]) -> Iterator[Told]:
    state, again = now.get("state"), now.get("restarts", 0) != before.get("restarts", 0)
    if state == "running" and (before.get("state") != "running" or again):
        yield Kind.NORMAL, "Created", f"Created container: {name}"
        yield Kind.NORMAL, "Started", f"Started container {name}"
    if state == "waiting" and now.get("reason") == "CrashLoopBackOff" and before.get("reason") != "CrashLoopBackOff":
        yield Kind.WARNING, "BackOff", f"Back-off restarting failed container {name}"
    if state == before.get("state") and now.get("reason") == before.get("reason"):
        return
    if state != "running" and now.get("reason") in ("StartError", "ContainerCannotRun", "PostStartHookError"):
        yield Kind.WARNING, "Failed", f"Error: {now.get('message') or now['reason']}"
    if state == "terminated" and now.get("reason") == "OOMKilled":
        yield Kind.WARNING, "OOMKilled", f"Container {name} used more memory than it may"
