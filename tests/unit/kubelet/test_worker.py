"""What a supervisor's report leads to."""

from types import SimpleNamespace

from isthmus.kubelet.pods.decision.state import Pauses
from isthmus.kubelet.pods.worker import Worker
from tests.support.pods.objects import SETTINGS, container, pod


def test_probe_that_flaps_asks_slurm_nothing():
    hurried = []
    parts = SimpleNamespace(
        store=SimpleNamespace(folder=lambda uid: None),
        jobs=SimpleNamespace(hurry=lambda: hurried.append(True), others=lambda *_: []),
        pauses=Pauses(),
        settings=SETTINGS,
        services=SimpleNamespace(reported=lambda *_: None),
        recorder=SimpleNamespace(record=lambda *_: None),
    )
    worker = Worker(parts, pod(container("app", image="web")))
    for number, phase in enumerate(["running", *["running"] * 20, "ended"]):
        app = {"ready": bool(number % 2), "failures": {}, "killing": ""}
        worker.reported({"job": "1", "sequence": number, "phase": phase, "containers": {"app": app}})
    # The first report, and the end.
    assert len(hurried) == 2
