"""The image of a running pod is changed: its container is another, in the same job; each test goes on from the last."""

import pytest

from tests.support.wait import wait


def seen(space):
    """Return how the container is: phase, state, reason, image, how often it began again."""
    reported = space.container("changing", "main")
    [(state, fields)] = reported["state"].items()
    return space.status("changing")["phase"], state, fields.get("reason"), reported["image"], reported["restartCount"]


def job(space, controller):
    """Return the pod's job."""
    return controller.output(f"squeue --noheader --user={space.cluster.user} --name=changing --format=%A").strip()


@pytest.fixture(scope="module")
def first(space, controller):
    """The pod's job as it was before."""
    space.ready("pod/changing")
    return job(space, controller)


def test_container_is_another_in_the_same_job(space, first, controller, images):
    old = space.container("changing", "main")
    space.kubectl(f"set image pod/changing main={images['mpi']}")
    wait(lambda: seen(space), lambda reported: reported == ("Running", "running", None, images["mpi"], 1), timeout_s=90)
    now = space.container("changing", "main")
    assert now["imageID"] != old["imageID"]
    assert now["lastState"]["terminated"]["exitCode"] == 5
    assert "Debian" in space.kubectl("exec changing -- cat /etc/os-release")
    assert (job(space, controller), first.isdigit()) == (first, True)


def test_change_is_an_event(space, first):
    reported = {"reason": "Killing", "message": "Container main definition changed, will be restarted"}
    wait(
        lambda: [{key: event[key] for key in reported} for event in space.events("changing")],
        lambda all_: reported in all_,
    )


def test_image_that_cannot_be_had_is_waited_for(space, first, controller, images):
    missing = f"{images['mpi'].rpartition('/')[0]}/nothing:1"
    space.kubectl(f"set image pod/changing main={missing}")
    waiting = ("Running", "waiting", "ImagePullBackOff", missing, 1)
    wait(lambda: seen(space), lambda reported: reported == waiting, timeout_s=90)
    space.kubectl(f"set image pod/changing main={images['busybox']}")
    wait(
        lambda: seen(space),
        lambda reported: reported == ("Running", "running", None, images["busybox"], 2),
        timeout_s=90,
    )
    assert job(space, controller) == first
