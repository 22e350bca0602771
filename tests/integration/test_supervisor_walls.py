"""What a hostile container tries against the supervisor, which enters it, and against its pod's other containers."""

import ctypes
import os
import threading

import pytest

from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import container, mount, plan, probe, volume

# renameat2(2): two names change places in one step.
_EXCHANGE, _AT_FDCWD = 2, -100
_REST_S, _BACK_AND_FORTH = 0.01, 100
CONTAINERS = 12


def swap(ended, one, other):
    """Let two names change places until the test has ended; now and then they rest as they were.

    Without a rest the kernel chooses where this thread waits for a busy processor, perhaps always behind the link; with
    one that is shorter than these waits, nearly always.
    """
    libc = ctypes.CDLL(None)
    while not ended.wait(_REST_S):
        for _ in range(2 * _BACK_AND_FORTH):
            libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE)


@pytest.fixture
def racing(pod):
    """A volume whose folder `x` is now a folder, now a link to the user's own files."""
    whole, outside = pod.folder / "volume", pod.folder / "outside"
    (whole / "x").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("topsecret\n")
    (whole / "y").symlink_to(outside)
    ended = threading.Event()
    thread = threading.Thread(target=swap, args=(ended, whole / "x", whole / "y"))
    thread.start()
    yield volume("racing", "host", path=str(whole))
    ended.set()
    thread.join()


def log(pod, name):
    return (pod.folder / f"logs/{name}/0.log").read_text()


def test_part_of_a_volume_that_is_swapped_with_a_link(pod, racing):
    names = [f"c{number}" for number in range(CONTAINERS)]
    mounts = [mount("racing", "/m", sub_path="x")]
    report = pod.run(plan(*(container(name, "ls /m", mounts=mounts) for name in names), volumes=[racing])).ended()
    assert not [name for name in names if "secret" in log(pod, name)]
    reported = {one["message"] for one in report["containers"].values()} - {""}
    assert reported <= {"subPath x leads out of volume racing; name a path inside it"}
    assert [one for one in report["containers"].values() if one["exit_code"] == 0]


@pytest.mark.parametrize("share_pid", [False, True], ids=["own processes", "shared processes"])
def test_working_folder_that_leads_out(pod, share_pid):
    """Descriptors of the supervisor, other processes' roots, and a link of the image's to one."""
    places = [
        *(f"/proc/self/fd/{number}" for number in range(4, 25, 4)),
        "/proc/1/root/etc",
        "/proc/1/cwd",
        "/proc/3/root",
    ]
    tried = [container(f"c{number}", "readlink /proc/self/cwd; ls", cwd=place) for number, place in enumerate(places)]
    sidecar = container("sidecar", "echo mine >/tmp/mine; sleep 1000", sidecar=True)
    report = pod.run(plan(*tried, init=[sidecar], share_pid=share_pid)).ended(180)
    reported = [report["containers"][one["name"]] for one in tried]
    assert {one["reason"] for one in reported} == {"StartError"}
    assert all(f'workingDir "{one["cwd"]}": ' in why["message"] for one, why in zip(tried, reported, strict=True))


def test_working_folder_that_is_missing_is_made(pod):
    pod.run(plan(container("main", "pwd; readlink /proc/self/cwd", cwd="/srv/a/b"))).ended()
    assert [line.split()[3] for line in log(pod, "main").splitlines()] == ["/srv/a/b", "/srv/a/b"]


def test_search_path_without_end(pod):
    env = [{"name": "PATH", "value": "/none:" * 12000 + "/bin"}]
    reported = pod.run(plan(container("main", "exit 0", env=env))).ended()["containers"]["main"]
    assert (reported["reason"], reported["message"]) == (
        "StartError",
        "PATH has 12001 folders, 64 at most; shorten it, or name sh in full",
    )


@pytest.mark.parametrize(
    "added", [["SYS_PTRACE"], ["SYS_PTRACE", "SYS_ADMIN"], ["ALL"]], ids=["tracer", "mounter", "privileged"]
)
@pytest.mark.parametrize("share_pid", [False, True], ids=["own processes", "shared processes"])
def test_processes_that_lead_to_the_node(pod, added, share_pid):
    """Roots, folders, descriptors and mounts of all that a tracer sees; the pod's folder is the user's own."""
    (pod.folder / "secret").write_text("topsecret\n")
    places = f"$p/root{pod.folder} $p/cwd{pod.folder} $p/fd/*{pod.folder}"
    script = (
        f"for p in /proc/[0-9]*; do for f in {places}; do cat $f/secret 2>/dev/null; done;"
        f" nsenter --mount=$p/ns/mnt cat {pod.folder}/secret 2>/dev/null; done; umount /proc 2>/dev/null;"
        f" for p in /proc/[0-9]*; do cat $p/root{pod.folder}/secret 2>/dev/null; done; echo done; sleep 1000"
    )
    kubelet = pod.run(
        plan(
            container("main", script, capabilities={"add": added, "drop": []}),
            container("other", "sleep 1000"),
            share_pid=share_pid,
        )
    )
    wait_for_log(kubelet, "main", b"done\n")
    assert "topsecret" not in log(pod, "main")


def test_who_enters_a_container_cannot_be_read(pod):
    """A container with all rights inspects every process that enters it, while probes and exec come all the time."""
    look = "grep -q SLURM_JOB_ID= $p/environ && echo CAUGHT $p; ls -l $p/fd | grep -E 'mnt:|isthmus-'"
    script = f"while :; do for p in /proc/[0-9]*; do {look}; done; done 2>/dev/null"
    env = [{"name": "PATH", "value": ":".join([*(f"/none/{number}" for number in range(60)), "/bin"])}]
    main = container("main", script, env=env, capabilities={"add": ["ALL"], "drop": []})
    kubelet = pod.run(plan({**main, "liveness": probe("exec", argv=["true"])}))
    kubelet.until("main", state="running")
    for _ in range(40):
        kubelet.exec("main", "true").finish()
    assert log(pod, "main") == ""


def test_termination_message_that_never_ends(pod):
    """A fifo nobody writes to, and a link to the reader's memory."""
    fifo = container("fifo", "rm /dev/termination-log; mkfifo /dev/termination-log")
    link = container("link", "ln -sf /proc/self/environ /dev/termination-log")
    report = pod.run(plan(fifo, link)).ended()
    assert {one["message"] for one in report["containers"].values()} == {""}


def test_container_that_cannot_be_completed_is_closed(pod):
    bad = container("bad", "exit 0", termination_path="/dev/none/log")
    kubelet = pod.run(plan(container("main", "sleep 1000"), bad))
    kubelet.until("main", ready=True)
    assert kubelet.until("bad", state="terminated")["reason"] == "ContainerCannotRun"
    # The other's.
    assert len([each for each in pod.descriptors() if each.startswith("mnt:")]) == 1
