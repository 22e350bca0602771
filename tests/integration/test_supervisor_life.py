"""A pod's containers begin, end and begin again, on real Apptainer."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import action, container, mount, plan, volume
from tests.support.wait import wait

SHARED = [volume("shared", "dir")]
AT_DATA = [mount("shared", "/data")]


def ended_with(report, name):
    reported = report["containers"][name]
    return reported["reason"], reported["exit_code"], reported["signal"]


@pytest.mark.parametrize(
    ("script", "reported", "status"),
    [
        ("exit 0", ("Completed", 0, None), 0),
        ("exit 3", ("Error", 3, None), 1),
        ("kill -9 $$$$", ("Error", 137, 9), 1),
        ("kill -15 $$$$", ("Error", 143, 15), 1),
    ],
)
def test_outcome_is_the_programs(pod, script, reported, status):
    report = pod.run(plan(container("main", script))).ended()
    assert ended_with(report, "main") == reported
    assert pod.exit_status() == status


def test_program_that_is_not_there(pod):
    report = pod.run(plan(container("main", "", argv=["/no/such", "x"]))).ended()
    assert ended_with(report, "main") == ("StartError", 128, None)
    assert report["containers"]["main"]["message"] == 'exec: "/no/such": No such file or directory'
    assert pod.exit_status() == 1


def test_image_that_is_none(pod):
    bad = pod.host.shared / "bad.squashfs"
    bad.write_text("no image")
    report = pod.run(plan(container("main", "", image=str(bad)))).ended()
    assert ended_with(report, "main") == ("ContainerCannotRun", 128, None)
    assert "bad.squashfs" in report["containers"]["main"]["message"]


def test_init_containers_run_in_order_before_the_others(pod):
    init = [container(name, f"sleep 0.2; echo {name} >>/data/order", mounts=AT_DATA) for name in ("one", "two")]
    main = container("main", "echo main >>/data/order; cat /data/order", mounts=AT_DATA)
    kubelet = pod.run(plan(main, init=init, volumes=SHARED))
    kubelet.ended()
    assert (pod.folder / "logs/main/0.log").read_text().split()[3::4] == ["one", "two", "main"]


def test_init_container_that_fails_ends_the_pod(pod):
    report = pod.run(plan(container("main", "exit 0"), init=[container("setup", "exit 4")])).ended()
    assert ended_with(report, "setup") == ("Error", 4, None)
    assert (report["containers"]["main"]["state"], report["containers"]["main"]["reason"]) == (
        "waiting",
        "PodInitializing",
    )
    assert pod.exit_status() == 1


def test_sidecar_runs_beside_and_ends_last(pod):
    said = "trap 'echo bye >>/data/order; exit 0' TERM; touch /data/up; while :; do sleep 0.05; done"
    sidecar = container("proxy", said, sidecar=True, mounts=AT_DATA)
    main = container("main", "test -e /data/up || sleep 0.5; test -e /data/up; echo $?", mounts=AT_DATA)
    report = pod.run(plan(main, init=[sidecar], volumes=SHARED)).ended()
    assert ended_with(report, "main") == ("Completed", 0, None)
    assert ended_with(report, "proxy") == ("Completed", 0, None)
    assert report["containers"]["proxy"]["finished"] >= report["containers"]["main"]["finished"]
    assert pod.exit_status() == 0


def test_container_that_fails_starts_again_then_pauses(pod):
    kubelet = pod.run(plan(container("main", "echo run; touch /x; exit 1"), restart_policy="OnFailure"))
    reported = kubelet.until("main", state="waiting", reason="CrashLoopBackOff")
    assert (reported["restarts"], reported["last"]["exit_code"]) == (1, 1)
    assert reported["message"] == "back-off 10s restarting failed container=main"
    assert kubelet.logs("main", previous=True).finish()[1] == b"run\n"
    kubelet.send({"type": "stop", "grace_s": 1})
    assert kubelet.ended()["containers"]["main"]["state"] == "terminated"


def test_success_is_not_repeated_on_failure_only(pod):
    report = pod.run(plan(container("main", "exit 0"), restart_policy="OnFailure")).ended()
    assert report["containers"]["main"]["restarts"] == 0


def test_stop_runs_the_hook_then_sends_sigterm(pod):
    script = "trap 'echo term; exit 5' TERM; echo up; while :; do sleep 0.05; done"
    hook = action("exec", argv=["sh", "-c", "echo hook >/data/said"])
    kubelet = pod.run(plan(container("main", script, pre_stop=hook, mounts=AT_DATA), volumes=SHARED))
    wait_for_log(kubelet, "main", b"up")
    assert kubelet.exec("main", "cat", "/data/said").finish()[0] == 1
    kubelet.send({"type": "stop", "grace_s": 10})
    report = kubelet.ended()
    assert ended_with(report, "main") == ("Error", 5, None)
    assert "term" in (pod.folder / "logs/main/0.log").read_text()


def test_stop_kills_who_does_not_listen_after_the_grace(pod):
    kubelet = pod.run(plan(container("main", "trap '' TERM; echo up; while :; do sleep 0.05; done")))
    wait_for_log(kubelet, "main", b"up")
    begun = time.monotonic()
    kubelet.send({"type": "stop", "grace_s": 1})
    report = kubelet.ended()
    assert ended_with(report, "main") == ("Error", 137, 9)
    assert not report["sigterm"]
    assert 0.9 < time.monotonic() - begun < 20


def test_sigterm_from_slurm_ends_the_pod_gracefully(pod):
    kubelet = pod.run(plan(container("main", "trap 'exit 6' TERM; echo up; while :; do sleep 0.05; done")))
    wait_for_log(kubelet, "main", b"up")
    os.kill(pod.supervisor(), signal.SIGTERM)
    report = kubelet.ended()
    assert ended_with(report, "main") == ("Error", 6, None)
    assert report["sigterm"]
    assert pod.exit_status() == 1


def test_sigterm_to_every_process_leaves_time_to_end(pod):
    """Slurm's scancel and time limit do so."""
    script = "trap 'sleep 1; cat /data/x /bin/busybox | wc -c; ls / >/dev/null && exit 6' TERM; echo up; touch /data/x;"
    main = container("main", f"{script} while :; do sleep 0.05; done", mounts=AT_DATA)
    kubelet = pod.run(plan(main, volumes=SHARED))
    wait_for_log(kubelet, "main", b"up")
    for pid in pod.below(pod.supervisor()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    assert ended_with(kubelet.ended(), "main") == ("Error", 6, None)


def test_end_is_reported_before_apptainer_has_ended(pod):
    script = "echo up; until [ -e /data/go ]; do sleep 0.05; done; exit 3"
    kubelet = pod.run(plan(container("main", script, mounts=AT_DATA), volumes=SHARED))
    wait_for_log(kubelet, "main", b"up")
    [apptainer] = [pid for pid in pod.below(pod.supervisor()) if pid in pod.processes(b"Apptainer runtime parent")]
    # It cannot end now; a supervisor that waits for it kills it before it reports.
    os.kill(apptainer, signal.SIGSTOP)
    assert kubelet.exec("main", "touch", "/data/go").finish()[0] == 0
    kubelet.until("main", state="terminated", exit_code=3)
    assert Path(f"/proc/{apptainer}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    os.kill(apptainer, signal.SIGCONT)
    assert ended_with(kubelet.ended(), "main") == ("Error", 3, None)


def test_apptainer_does_not_wait_for_a_descriptor_of_its_mounts(pod):
    """It gives file systems that somebody keeps alive two seconds, at each end of a container."""
    script = "echo up; until [ -e /data/go ]; do sleep 0.05; done"
    kubelet = pod.run(plan(container("main", script, mounts=AT_DATA), volumes=SHARED))
    wait_for_log(kubelet, "main", b"up")
    mounts = kubelet.exec("main", "readlink", "/proc/self/ns/mnt").finish()[1].decode().strip()
    assert mounts in pod.descriptors()
    [apptainer] = [pid for pid in pod.below(pod.supervisor()) if pid in pod.processes(b"Apptainer runtime parent")]
    os.kill(apptainer, signal.SIGSTOP)
    kubelet.exec("main", "touch", "/data/go").finish()
    wait(pod.descriptors, lambda held: mounts not in held, interval_s=0.05)
    assert Path(f"/proc/{apptainer}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    os.kill(apptainer, signal.SIGCONT)
    kubelet.ended()


def test_nothing_outlives_a_supervisor_that_is_killed(pod):
    kubelet = pod.run(
        plan(container("main", "touch /data/x; chown 5 /data/x; exec sleep 98765", mounts=AT_DATA), volumes=SHARED)
    )
    kubelet.until("main", state="running", ready=True)
    before = pod.processes() + pod.processes(b"98765")
    assert len(before) > 2
    os.kill(pod.supervisor(), signal.SIGKILL)
    wait(lambda: [pid for pid in before if Path(f"/proc/{pid}").exists()], lambda left: not left)
    wait(lambda: pod.host.run("ls", "/scratch"), lambda left: pod.folder.name not in left)


def test_nothing_is_left_of_a_pod_that_ended(pod):
    pod.run(plan(container("main", "touch /x /data/y; chown 7:7 /x /data/y", mounts=AT_DATA), volumes=SHARED)).ended()
    pod.exit_status()
    assert pod.folder.name not in pod.host.run("ls", "/scratch")
    wait(pod.processes, lambda left: not left)


@pytest.mark.parametrize(
    ("script", "policy", "reported"),
    [
        ("echo last words >/dev/termination-log", "File", "last words\n"),
        ("echo seen; exit 1", "File", ""),
        ("echo seen; exit 1", "FallbackToLogsOnError", "seen"),
        ("echo seen", "FallbackToLogsOnError", ""),
    ],
)
def test_termination_message(pod, script, policy, reported):
    report = pod.run(plan(container("main", script, termination_policy=policy))).ended()
    assert report["containers"]["main"]["message"] == reported


def test_termination_message_in_a_place_of_its_own(pod):
    main = container("main", "echo here >/var/run/last", termination_path="/var/run/last", read_only=True)
    assert pod.run(plan(main)).ended()["containers"]["main"]["message"] == "here\n"


def test_plan_that_is_none_is_refused_whole(pod):
    report = pod.run({**plan(container("main", "exit 0")), "surprise": 1}).ended()
    assert report["error"] == {"reason": "InvalidPlan", "message": "plan: unknown or missing: surprise"}
    assert pod.exit_status() == 1


def test_ephemeral_container_joins(pod):
    kubelet = pod.run(plan(container("main", "sleep 1000")))
    kubelet.until("main", state="running")
    kubelet.send({"type": "ephemeral", "container": container("debug", "exit 9", image=str(pod.host.image))})
    assert kubelet.until("debug", state="terminated")["exit_code"] == 9
