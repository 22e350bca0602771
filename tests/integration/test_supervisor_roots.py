"""A container's root that can be written: an overlay of the kernel's over the image, on real Apptainer."""

from pathlib import Path

from tests.support.pods.plans import container, plan
from tests.support.wait import wait

KIND = "grep ' / ' /proc/mounts | cut -d ' ' -f 1"


def said(pod, name="main"):
    return [line.split(" ", 3)[3] for line in (pod.folder / f"logs/{name}/0.log").read_text().splitlines()]


def test_root_is_the_kernels_and_what_is_made_again_is_empty(pod):
    script = f"{KIND}; rm -r /var; mkdir /var; ls -A /var; touch /var/new; mv /var/new /root; ls /root"
    pod.run(plan(container("main", script))).ended()
    assert said(pod) == ["overlay", "new"]
    assert pod.exit_status() == 0


def test_containers_do_not_share_what_they_write(pod):
    both = [
        container(name, f"{KIND}; touch /{name}; sleep 0.5; ls -d /one /two 2>/dev/null") for name in ("one", "two")
    ]
    pod.run(plan(*both)).ended()
    assert [said(pod, name) for name in ("one", "two")] == [["overlay", "/one"], ["overlay", "/two"]]


def test_nothing_of_it_is_left(pod):
    kubelet = pod.run(plan(container("main", f"{KIND}; sleep 1")))
    # Pods of other tests run on the machine, so this one's descendants are looked at.
    family = wait(lambda: pod.below(pod.supervisor()), lambda pids: set(pids) & set(pod.processes(b"findmnt")))
    kubelet.ended()
    pod.exit_status()
    assert [pid for pid in family if Path(f"/proc/{pid}").exists()] == []


def test_it_is_the_same_without_subordinate_ids(supervised):
    pod = supervised("bob")
    pod.run(plan(container("main", KIND))).ended()
    assert said(pod) == ["overlay"]
