"""Events are counted, not repeated."""

import asyncio

from isthmus.kubelet import recorder
from isthmus.kubelet.events import Kind
from isthmus.kubelet.recorder import Recorder
from tests.support.fake_kube import FakeKube

POD = {"metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1"}}


def written(tell, monkeypatch, again_s=0.0):
    monkeypatch.setattr(recorder, "_AGAIN_S", again_s)

    async def use():
        kube = FakeKube()
        made = Recorder(kube, "slurm")
        task = asyncio.create_task(made.run())
        tell(made)
        await asyncio.sleep(0.05)
        task.cancel()
        return kube

    return asyncio.run(use())


def test_equal_events_are_one(monkeypatch):
    def tell(made):
        for _ in range(3):
            made.tell(POD, Kind.WARNING, "Failed", "no")
        made.tell(POD, Kind.NORMAL, "Started", "yes", "spec.containers{main}")

    found = [*written(tell, monkeypatch).objects.values()]
    assert [(one["reason"], one["count"]) for one in found] == [("Failed", 3), ("Started", 1)]
    assert found[1]["involvedObject"]["fieldPath"] == "spec.containers{main}"


def test_quick_repetition_costs_no_request(monkeypatch):
    def tell(made):
        for _ in range(50):
            made.tell(POD, Kind.WARNING, "Failed", "no")

    assert len(written(tell, monkeypatch, again_s=60).asked) == 1


def test_too_many_are_dropped(monkeypatch):
    monkeypatch.setattr(recorder, "_WAITING", 10)

    def tell(made):
        for number in range(50):
            made.tell(POD, Kind.NORMAL, "Some", str(number))

    assert len(written(tell, monkeypatch).objects) == 10
