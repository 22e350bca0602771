"""Pauses of what is begun again: longer while it fails at once, short after it went well."""

import asyncio
from types import SimpleNamespace

import pytest

from isthmus.clients.kube.api import KubeError
from isthmus.kubelet import main
from isthmus.kubelet.objects import watching
from isthmus.support.backoff import Backoff


class Over(BaseException):
    """The test has seen enough."""


class Clock:
    """Time that passes in pauses, which are kept, and in work."""

    def __init__(self, monkeypatch, module, enough):
        self.now_s, self.pauses, self.enough = 0.0, [], enough
        monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=self.sleep))
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now_s), raising=False)

    async def sleep(self, pause_s):
        self.now_s += pause_s
        self.pauses.append(pause_s)
        if len(self.pauses) == self.enough:
            raise Over


def test_loop_that_went_well_for_long_begins_soon(monkeypatch):
    clock, lasted_s = Clock(monkeypatch, main, 6), iter([0, 0, 0, 3600, 0, 0])

    async def loop():
        clock.now_s += next(lasted_s)
        raise KubeError("away")

    with pytest.raises(Over):
        asyncio.run(main.guarded("x", loop, Backoff(1, 30, draw=max)))
    assert clock.pauses == [1, 2, 4, 1, 2, 4]


def test_watches_that_end_at_once_are_not_begun_without_a_pause(monkeypatch):
    clock, begun = Clock(monkeypatch, watching, 4), []

    class Kube:
        async def get(self, path, query):
            return {"apiVersion": "v1", "kind": "PodList", "items": [], "metadata": {"resourceVersion": "1"}}

        async def watch(self, path, version, query):
            begun.append(clock.now_s)
            clock.now_s += 60 if len(begun) == 3 else 0
            assert len(begun) < 9
            return
            yield

    ignored = (lambda objects: None, lambda kind, changed: None)
    with pytest.raises(Over):
        asyncio.run(watching.follow(Kube(), "/api/v1/pods", {}, *ignored, Backoff(1, 30, draw=max)))
    assert clock.pauses == [1, 2, 1, 2]
