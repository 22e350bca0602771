"""Probes of all kinds against a container that is well and becomes ill, on real Apptainer."""

import pytest

from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import container, mount, plan, probe, volume

HTTP = "mkdir -p /www; echo ok >/www/ok; httpd -p 18232 -h /www; sleep 1000"


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        ("touch /well; sleep 1000", probe("exec", argv=["test", "-e", "/well"])),
        (HTTP, probe("http", port=18232, path="/ok")),
        (HTTP, probe("tcp", port=18232)),
    ],
    ids=["exec", "http", "tcp"],
)
def test_ready_when_the_answer_is_good(pod, script, asked):
    kubelet = pod.run(plan(container("main", script, readiness=asked)))
    assert kubelet.until("main", ready=True)["is_started"]


@pytest.mark.parametrize(
    "asked",
    [
        probe("exec", argv=["sh", "-c", "sleep 5"]),
        probe("exec", argv=["/no/such"]),
        probe("http", port=18232, path="/missing"),
        probe("tcp", port=18239),
        probe("grpc", port=18232),
    ],
    ids=["exec that hangs", "exec that is not there", "http", "tcp", "grpc"],
)
def test_container_is_ended_when_it_is_not_alive(pod, asked):
    reported = pod.run(plan(container("main", HTTP, liveness={**asked, "initial_delay_s": 1}))).ended()["containers"][
        "main"
    ]
    assert (reported["reason"], reported["exit_code"]) == ("Error", 143)
    assert (reported["failures"]["liveness"]["times"], reported["killing"]) == (
        1,
        "Container main failed liveness probe",
    )


def test_readiness_comes_and_goes(pod):
    asked = probe("exec", argv=["test", "-e", "/well"])
    kubelet = pod.run(plan(container("main", "sleep 1000", readiness=asked)))
    assert not kubelet.until("main", state="running", is_started=True)["ready"]
    assert kubelet.exec("main", "touch", "/well").finish()[0] == 0
    kubelet.until("main", ready=True)
    assert kubelet.exec("main", "rm", "/well").finish()[0] == 0
    assert kubelet.until("main", ready=False)["restarts"] == 0


def test_startup_probe_holds_the_others_back(pod):
    startup = probe("exec", argv=["test", "-e", "/data/up"], failure=100)
    ill = probe("exec", argv=["test", "-e", "/data/up"], timeout_s=30)
    main = container("main", "sleep 2; touch /data/up; sleep 1000", startup=startup, liveness=ill)
    main["mounts"] = [mount("data", "/data")]
    kubelet = pod.run(plan(main, volumes=[volume("data", "dir")]))
    kubelet.until("main", state="running", is_started=False)
    assert kubelet.until("main", ready=True)["restarts"] == 0


def test_startup_probe_that_fails_ends_the_container(pod):
    startup = probe("exec", argv=["false"], failure=2, grace_s=1)
    reported = pod.run(plan(container("main", "trap '' TERM; while :; do sleep 0.1; done", startup=startup))).ended()
    assert reported["containers"]["main"]["exit_code"] == 137


def test_container_that_is_not_alive_starts_again(pod):
    asked = probe("exec", argv=["false"], initial_delay_s=1)
    kubelet = pod.run(plan(container("main", "sleep 1000", liveness=asked), restart_policy="Always"))
    words = "Container main failed liveness probe, will be restarted"
    assert kubelet.until("main", killing=words)["failures"]["liveness"] == {"times": 1, "message": "exit code 1"}
    assert kubelet.until("main", restarts=1, state="running")["last"]["exit_code"] == 143


def test_probes_count_from_the_start_of_the_program(pod):
    """Also those that wait for the startup probe; and liveness leaves the program a period to begin in."""
    asked = [
        probe("exec", argv=["sh", "-c", f"date +%s >>/data/{kind}"], timeout_s=30, **times)
        for kind, times in (
            ("readiness", {"initial_delay_s": 8, "period_s": 60}),
            ("liveness", {"initial_delay_s": 0, "period_s": 8}),
        )
    ]
    startup = probe("exec", argv=["test", "-e", "/data/up"], failure=100)
    asked_both = "while ! test -e /data/liveness; do sleep 0.1; done; echo alive; sleep 1000"
    script = f"date +%s >/data/began; sleep 6; touch /data/up; {asked_both}"
    main = container("main", script, startup=startup, readiness=asked[0], liveness=asked[1])
    main["mounts"] = [mount("data", "/data")]
    kubelet = pod.run(plan(main, volumes=[volume("data", "dir")]))
    kubelet.until("main", ready=True)
    wait_for_log(kubelet, "main", b"alive")
    said = kubelet.exec("main", "sh", "-c", "cat /data/began /data/readiness; head -n 1 /data/liveness").finish()[1]
    began, ready, alive = map(int, said.split())
    # From the end of the startup probe it would be 14 at least.
    assert all(8 <= asked - began < 13 for asked in (ready, alive))
