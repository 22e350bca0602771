"""mountPropagation: what one container of a pod mounts in a volume, as the others see it."""

from tests.support.pods.plans import container, mount, plan, volume

ALL = {"add": ["ALL"], "drop": []}
MOUNT = "mkdir -p /v/in && mount -t tmpfs inner /v/in && echo seen >/v/in/file"
LOOK = "cat /v/in/file 2>&1"
SEEN, UNSEEN = "seen\n", "cat: can't open '/v/in/file': No such file or directory\n"


def said(kubelet, name, script):
    return kubelet.exec(name, "sh", "-c", script).finish()[1].decode()


def one(name, propagation, **rest):
    given = {"propagation": propagation} if propagation else {}
    return container(name, "sleep 1000", capabilities=ALL, mounts=[mount("v", "/v", **given, **rest)])


def started(pod, *containers, kind=None, **rest):
    kubelet = pod.run(plan(*containers, volumes=[kind or volume("v", "dir")], **rest))
    for each in containers:
        kubelet.until(each["name"], ready=True)
    return kubelet


def test_mount_reaches_those_who_ask_for_it(pod):
    names = {"to": "Bidirectional", "from": "HostToContainer", "also": "Bidirectional", "none": "None", "old": ""}
    kubelet = started(pod, *(one(name, propagation) for name, propagation in names.items()))
    assert said(kubelet, "to", MOUNT) == ""
    shown = {name: said(kubelet, name, LOOK) for name in names}
    assert shown == {"to": SEEN, "from": SEEN, "also": SEEN, "none": UNSEEN, "old": UNSEEN}
    # Any of them takes it away for all.
    assert said(kubelet, "also", "umount /v/in; echo $?") == "0\n"
    assert [said(kubelet, name, LOOK) for name in ("to", "from")] == [UNSEEN, UNSEEN]


def test_mount_of_who_only_receives_stays_his(pod):
    kubelet = started(pod, one("to", "Bidirectional"), one("from", "HostToContainer"), one("none", "None"))
    for name in ("from", "none"):
        assert said(kubelet, name, f"{MOUNT}; {LOOK}; umount /v/in && {LOOK}") == SEEN + UNSEEN
        said(kubelet, name, MOUNT)
    assert said(kubelet, "to", LOOK) == UNSEEN


def test_mount_is_there_for_who_starts_later(pod):
    """Whatever its propagation, as everywhere: the mounts below a volume are mounted with it."""
    first = container("first", MOUNT, capabilities=ALL, mounts=[mount("v", "/v", propagation="Bidirectional")])
    kubelet = started(pod, one("from", "HostToContainer"), one("none", "None"), init=[first])
    assert [said(kubelet, name, LOOK) for name in ("from", "none")] == [SEEN, SEEN]


def test_part_of_a_volume_that_is_only_read(pod):
    made = container("made", "mkdir -p /v/part", mounts=[mount("v", "/v")])
    reads = one("from", "HostToContainer", sub_path="part", read_only=True)
    kubelet = started(pod, one("to", "Bidirectional", sub_path="part"), reads, init=[made])
    said(kubelet, "to", MOUNT)
    assert said(kubelet, "from", f"{LOOK}; touch /v/x 2>&1") == SEEN + "touch: /v/x: Read-only file system\n"


def test_mount_outlives_a_restart_and_goes_with_the_pod(pod):
    again = container("again", "cat /v/in/file; sleep 1; test -e /v/in/file", mounts=[mount("v", "/v")])
    again["mounts"][0]["propagation"] = "HostToContainer"
    claim = pod.folder / "claim"
    claim.mkdir()
    pod.host.run("chown", "alice:", claim, user="root")
    kind = volume("v", "host", path=str(claim))
    kubelet = pod.run(plan(one("to", "Bidirectional"), again, volumes=[kind], restart_policy="OnFailure"))
    kubelet.until("again", restarts=1)
    said(kubelet, "to", MOUNT)
    kubelet.until("again", state="terminated", exit_code=0, timeout_s=90)
    assert said(kubelet, "to", LOOK) == SEEN
    kubelet.send({"type": "stop", "grace_s": 0})
    kubelet.ended()
    pod.exit_status()
    assert sorted(path.name for path in (claim / "in").iterdir()) == []
    assert pod.folder.name not in pod.host.run("ls", "-A", "/scratch")
