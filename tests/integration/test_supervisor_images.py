"""A container gets another image while its pod runs, on real Apptainer."""

import pytest

from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import container, mount, plan, volume
from tests.support.wait import wait

UP = "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done"
CHANGED = "Container main definition changed, will be restarted"


def named(pod, name, script, **rest):
    """Return a container with the pod's image under a name."""
    reported = {"image": str(pod.host.image), "image_id": f"{name}@sha256:0", "image_name": name, **rest}
    return container("main", script, **reported)


def replace(kubelet, reported):
    kubelet.send({"type": "replace", "name": "main", "container": reported})


def states(reported):
    """Return how it is, how often it has started again, and with what image."""
    return reported["state"], reported["restarts"], reported["image_name"], reported["image_id"]


@pytest.fixture
def killed(pod, monkeypatch):
    """The reasons of kills that were reported."""
    found = []
    take = pod.kubelet._take

    def taken(frame, peer, greeted):
        if isinstance(frame, dict) and frame["type"] == "report":
            found.extend(one["killing"] for one in frame["containers"].values() if one["killing"])
            for one in frame["containers"].values():
                assert one["state"] != "terminated" or frame["phase"] in ("stopping", "ended"), "seen as ended"
        return take(frame, peer, greeted)

    monkeypatch.setattr(pod.kubelet, "_take", taken)
    return found


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_changed_container_is_another_whatever_the_policy(pod, killed, policy):
    kubelet = pod.run(plan(named(pod, "old", UP), restart_policy=policy))
    wait_for_log(kubelet, "main", b"up")
    replace(kubelet, named(pod, "new", "echo new; exec sleep 1000"))
    reported = kubelet.until("main", state="running", restarts=1)
    assert (states(reported), reported["last"]["exit_code"]) == (("running", 1, "new", "new@sha256:0"), 5)
    assert set(killed) == {CHANGED}
    wait(lambda: kubelet.logs("main").finish()[1], lambda said: said == b"new\n")
    replace(kubelet, named(pod, "new", "exit 9"))
    assert kubelet.exec("main", "true").finish()[0] == 0
    assert kubelet.report["containers"]["main"]["killing"] == ""


def test_container_without_its_new_image_waits_for_it(pod, killed):
    kubelet = pod.run(plan(named(pod, "old", UP)))
    wait_for_log(kubelet, "main", b"up")
    replace(kubelet, None)
    reported = kubelet.until("main", state="waiting", image_name="")
    assert (states(reported), reported["reason"], reported["last"]["exit_code"]) == (("waiting", 0, "", ""), "", 5)
    replace(kubelet, named(pod, "old", "exec sleep 1000"))
    assert states(kubelet.until("main", state="running")) == ("running", 1, "old", "old@sha256:0")


def test_pod_that_ends_while_it_waits_for_an_image(pod):
    kubelet = pod.run(plan(named(pod, "old", UP)))
    wait_for_log(kubelet, "main", b"up")
    replace(kubelet, None)
    kubelet.until("main", state="waiting", image_name="")
    kubelet.send({"type": "stop", "grace_s": 1})
    reported = kubelet.ended()["containers"]["main"]
    assert (reported["state"], reported["exit_code"], reported["restarts"]) == ("terminated", 5, 0)


def test_container_that_pauses_begins_at_once_with_its_new_image(pod):
    kubelet = pod.run(plan(named(pod, "old", "exit 1"), restart_policy="OnFailure"))
    kubelet.until("main", state="waiting", reason="CrashLoopBackOff")
    replace(kubelet, named(pod, "new", "exec sleep 1000"))
    assert states(kubelet.until("main", timeout_s=8, state="running")) == ("running", 2, "new", "new@sha256:0")


def test_init_container_is_left_alone_and_who_comes_after_is_another(pod):
    setup = container("setup", "echo up; until [ -e /data/go ]; do sleep 0.05; done", mounts=[mount("shared", "/data")])
    kubelet = pod.run(plan(named(pod, "old", "exit 3"), init=[setup], volumes=[volume("shared", "dir")]))
    wait_for_log(kubelet, "setup", b"up")
    kubelet.send({"type": "replace", "name": "setup", "container": {**setup, "image_name": "other"}})
    replace(kubelet, named(pod, "new", "exit 0"))
    kubelet.until("main", state="waiting", image_name="new")
    assert kubelet.exec("setup", "touch", "/data/go").finish()[0] == 0
    reported = kubelet.ended()["containers"]
    assert [(reported[name]["exit_code"], reported[name]["restarts"]) for name in ("setup", "main")] == [(0, 0), (0, 0)]


def test_init_container_that_failed_begins_again_with_its_new_image(pod):
    init = [named(pod, "old", "exit 1")]
    kubelet = pod.run(plan(container("app", "exec sleep 1000"), init=init, restart_policy="OnFailure"))
    kubelet.until("main", state="waiting", reason="CrashLoopBackOff")
    replace(kubelet, named(pod, "new", "exit 0"))
    kubelet.until("app", timeout_s=8, state="running")
    assert states(kubelet.report["containers"]["main"]) == ("terminated", 2, "new", "new@sha256:0")


def test_sidecar_is_another(pod):
    sidecar = named(pod, "old", UP, sidecar=True)
    kubelet = pod.run(plan(container("app", "exec sleep 1000"), init=[sidecar]))
    kubelet.until("app", state="running")
    replace(kubelet, named(pod, "new", "exec sleep 1000", sidecar=True))
    assert states(kubelet.until("main", state="running", restarts=1)) == ("running", 1, "new", "new@sha256:0")
