"""A home that is full, silent or gone while a pod runs: the pod goes on, is reached, and ends when it should."""

import json
import os
import signal
import time

import pytest

from tests.support.fakes.faulty_home import FaultyHome
from tests.support.pods.plans import container, plan, probe
from tests.support.wait import wait

# Counts where exec sees it, and says so many bytes with each number: no program may wait for its log.
SCRIPT = """trap 'exit 3' TERM
i=0; line=$(printf '%0{length}d' 0)
while :; do i=$((i+1)); echo $i >/tmp/count; echo "$i $line"; sleep 0.01; done"""


@pytest.fixture
def home(pod):
    faulty = FaultyHome(pod)
    yield faulty
    faulty.end()


def run(pod, length=10):
    """A kilobyte a line is soon more than a small home or the memory takes; ten bytes a line are never."""
    ready = probe("exec", argv=["test", "-s", "/tmp/count"])
    kubelet = pod.run(plan(container("main", SCRIPT.format(length=length), readiness=ready)))
    kubelet.until("main", ready=True)
    return kubelet


def count(kubelet):
    """The shell empties the file before it writes the next number: who reads between the two reads again."""

    def numbers():
        code, output, _ = kubelet.exec("main", "cat", "/tmp/count").finish(20)
        return output.split() if code == 0 else []

    return int(wait(numbers, interval_s=0.05)[0])


def goes_on(kubelet, numbers):
    """The program counts on, so its log does not hold it up."""
    begun = count(kubelet)
    wait(lambda: count(kubelet), lambda found: found > begun + numbers, timeout_s=60)


def stops(pod, kubelet, then=lambda: None, *, by_slurm=False):
    """A stop is obeyed and its outcome heard, whatever the home does."""
    if by_slurm:
        os.kill(pod.supervisor(), signal.SIGTERM)
    else:
        kubelet.send({"type": "stop", "grace_s": 5})
    report = kubelet.ended(30)
    then()
    assert (report["containers"]["main"]["exit_code"], pod.exit_status(40)) == (3, 1)
    assert "Traceback" not in (pod.folder / "slurm.log").read_text()


def test_full_home(pod, home):
    home.small()
    kubelet = run(pod, length=1000)
    home.fill()
    # More than may wait in memory.
    goes_on(kubelet, 1100)
    stops(pod, kubelet)
    assert "No space left on device" in (pod.folder / "slurm.log").read_text()


def test_full_home_that_has_room_again(pod, home):
    home.small()
    kubelet = run(pod)
    home.fill()
    goes_on(kubelet, 20)
    before = count(kubelet)
    home.empty()
    wait(lambda: kubelet.logs("main").finish()[1], lambda text: b"\n%d 0" % before in text, timeout_s=60)
    stops(pod, kubelet)
    assert json.loads(home.text("report.json"))["phase"] == "ended"


@pytest.mark.parametrize("by_slurm", [False, True], ids=["delete", "SIGTERM"])
def test_silent_home(pod, home, by_slurm):
    home.served()
    kubelet = run(pod)
    home.silence()
    goes_on(kubelet, 100)
    # A call that FUSE's program has taken cannot be killed, so the process waits; of NFS it can.
    stops(pod, kubelet, home.answer, by_slurm=by_slurm)


def test_home_that_is_silent_for_ten_seconds(pod, home):
    home.served()
    kubelet = run(pod)
    home.silence()
    until = time.monotonic() + 10
    while time.monotonic() < until:
        goes_on(kubelet, 20)
    home.answer()
    last = count(kubelet)
    wait(lambda: home.text("logs/main/0.log"), lambda text: f" F {last} 0" in text, timeout_s=60)
    stops(pod, kubelet)


def test_home_that_is_gone_and_back(pod, home):
    home.served()
    kubelet = run(pod)
    home.die()
    goes_on(kubelet, 50)
    last = count(kubelet)
    home.revive()
    wait(lambda: home.text("logs/main/0.log"), lambda text: f" F {last} 0" in text, timeout_s=60)
    stops(pod, kubelet)
    assert json.loads(home.text("report.json"))["phase"] == "ended"
