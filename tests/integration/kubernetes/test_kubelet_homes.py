"""A home that cannot be read or written: no pod is lost or doubled, none hangs, and the user sees why.

As the file system says it; a real one that is full would stop the API server's etcd, too.
"""

import errno
import os
import threading

import pytest

from isthmus.kubelet.pods import store
from tests.support.servers.api_user import SOON
from tests.support.wait import wait

FULL = ("HomeFull", "remove what you do not need")
AWAY = ("HomeUnavailable", "the pod starts when it can")


def failing(number):
    def fail(folder, *about):
        raise OSError(number, os.strerror(number), str(folder.path))

    return fail


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, FULL), (errno.EDQUOT, FULL), (errno.ESTALE, AWAY), (errno.EROFS, AWAY)]
)
def test_pod_waits_while_the_home_takes_nothing(bed, api, number, words):
    reason, advice = words
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.PodFolder, "accept", failing(number))
        pod = api.pod()
        reported = wait(lambda: api.status(pod), lambda status: status.get("reason") == reason, **SOON)
        assert advice in reported["message"]
        assert advice in wait(lambda: api.events(pod, reason), **SOON)[0]["message"]
        assert not bed.slurm.of(pod["metadata"]["uid"])
    api.wait_phase(pod, "Running")


def test_running_pods_end_while_the_home_is_stale(bed, api):
    """No file of theirs can be read or written: what the supervisors and the API server say is enough."""
    ended, deleted, other = (api.pod() for _ in range(3))
    for pod in (ended, deleted, other):
        api.wait_phase(pod, "Running")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.PodFolder, "_read", failing(errno.ESTALE))
        patch.setattr(store.PodFolder, "_write", failing(errno.ESTALE))
        bed.exit(ended)
        api.wait_phase(ended, "Succeeded")
        api.delete(deleted)
        wait(lambda: bed.supervisor(deleted).stops, **SOON)
        assert api.status(other)["phase"] == "Running"
    api.wait_gone(deleted)
    assert (api.status(other)["phase"], bed.supervisor(other).stops) == ("Running", [])


def test_job_that_cannot_be_recorded_runs_once(bed, api):
    """Its comment says whose it is, also to the next kubelet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.PodFolder, "set_job", failing(errno.ESTALE))
        pod = api.pod()
        api.wait_phase(pod, "Running")
        bed.kill()
    bed.start()
    bed.exit(pod)
    api.wait_phase(pod, "Succeeded")
    assert len(bed.slurm.of(pod["metadata"]["uid"])) == 1


def test_pod_goes_though_its_folder_cannot(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.PodFolder, "remove", failing(errno.ESTALE))
        api.delete(pod)
        api.wait_gone(pod)
        assert bed.folder(pod).exists()
    wait(lambda: not bed.folder(pod).exists(), **SOON)


def test_home_that_does_not_answer_one_pod_holds_up_no_other(bed, api):
    real, answers, slow = store.PodFolder.accept, threading.Event(), []

    def accept(folder, pod):
        if slow and folder.uid != slow[0]:
            return real(folder, pod)
        slow.append(folder.uid)
        answers.wait(60)
        return real(folder, pod)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.PodFolder, "accept", accept)
        first = api.pod()
        wait(lambda: slow, **SOON)
        try:
            api.wait_phase(api.pod(), "Running")
            assert api.status(first)["phase"] == "Pending"
        finally:
            answers.set()
    api.wait_phase(first, "Running")
