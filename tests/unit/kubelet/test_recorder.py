"""Events are counted, not repeated."""

import asyncio

from isthmus.kubelet.status import recorder
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.status.recorder import Recorder, Timing
from tests.support import virtual_time
from tests.support.fakes.api_server import FakeKube

POD = {"metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1"}}


def written(record, **timing):
    async def use(clock):
        kube = FakeKube()
        made = Recorder(kube, "slurm", Timing(**{"again_s": 0.0, **timing}))
        task = asyncio.create_task(made.run())
        record(made)
        before = -1
        while before < len(kube.asked):
            before = len(kube.asked)
            await asyncio.sleep(0.05)
        task.cancel()
        return kube

    return virtual_time.run(use)


def test_equal_events_are_one():
    def record(made):
        for _ in range(3):
            made.record(POD, Kind.WARNING, "Failed", "no")
        made.record(POD, Kind.NORMAL, "Started", "yes", "spec.containers{main}")

    found = [*written(record).objects.values()]
    assert [(one["reason"], one["count"]) for one in found] == [("Failed", 3), ("Started", 1)]
    assert found[1]["involvedObject"]["fieldPath"] == "spec.containers{main}"


def test_quick_repetition_costs_no_request():
    def record(made):
        for _ in range(50):
            made.record(POD, Kind.WARNING, "Failed", "no")

    assert len(written(record, again_s=60).asked) == 1


def test_too_many_are_dropped_and_counted(caplog):
    def record(made):
        for number in range(50):
            made.record(POD, Kind.NORMAL, "Some", str(number))

    assert len(written(record, waiting=5).objects) == 5
    assert [record.getMessage() for record in caplog.records] == ["45 events were dropped: the queue was full"]


def test_similar_events_are_bounded_and_others_are_not():
    def record(made):
        for number in range(30):
            made.record(POD, Kind.WARNING, "Unhealthy", str(number), "spec.containers{main}")
        made.record(POD, Kind.WARNING, "Unhealthy", "0", "spec.containers{other}")

    found = [one["message"] for one in written(record).objects.values()]
    assert found == [*map(str, range(10)), "0"]


def test_equal_words_about_two_containers_are_two_events():
    def record(made):
        for name in ("a", "b"):
            made.record(POD, Kind.NORMAL, "Started", "Container started", f"spec.containers{{{name}}}")

    assert len(written(record).objects) == 2


def test_events_of_one_moment_are_listed_in_the_order_they_were_recorded(monkeypatch):
    monkeypatch.setattr(recorder.time, "time_ns", lambda: 1_800_000_000_000_000_000)
    reasons = [f"Reason{number}" for number in range(20)]

    def record(made):
        for reason in reasons:
            made.record(POD, Kind.NORMAL, reason, "some")

    found = written(record).objects
    assert [found[path]["reason"] for path in sorted(found)] == reasons


def test_event_of_a_long_name_has_a_name():
    long = {"metadata": {**POD["metadata"], "name": "a" * 229 + "." + "b" * 23}}
    [path] = written(lambda made: made.record(long, Kind.NORMAL, "Some", "some")).objects
    name = path.rpartition("/")[2]
    assert (len(name) <= 253, name.startswith("a" * 229 + ".1")) == (True, True)
