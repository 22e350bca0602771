"""The image of a running pod's container is changed: pulled, reported once, and shown as it is."""

import pytest

from tests.support.servers.api_user import SOON
from tests.support.wait import wait


def set_image(api, pod, image):
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
    api.patch(path, {"spec": {"containers": [{"name": "main", "image": image}]}}, "strategic-merge-patch")


def seen(api, pod):
    """Return the phase, and how the container is."""
    status = api.status(pod)
    [main] = status["containerStatuses"]
    [(state, fields)] = main["state"].items()
    return status["phase"], state, fields.get("reason"), main["image"], main["restartCount"]


@pytest.fixture
def pod(bed, api):
    """A pod that runs and never starts a container again by itself."""
    made = api.pod()
    api.wait_phase(made, "Running")
    return made


def test_changed_image_replaces_the_container_once(bed, api, pod):
    set_image(api, pod, "other")
    wait(lambda: seen(api, pod), lambda reported: reported == ("Running", "running", None, "other", 1), **SOON)
    api.patch(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}", {"metadata": {"labels": {"a": "b"}}})
    set_image(api, pod, "third")
    wait(lambda: seen(api, pod), lambda reported: reported == ("Running", "running", None, "third", 2), **SOON)
    reported = [(name, made["image_name"]) for name, made in bed.supervisor(pod).replaced]
    assert reported == [("main", "other"), ("main", "third")]


def test_status_has_the_old_image_until_it_is_replaced(bed, api, pod):
    supervisor = bed.supervisor(pod)
    supervisor.on_replace = None
    set_image(api, pod, "other")
    wait(lambda: supervisor.replaced, **SOON)
    wait(lambda: api.status(pod)["observedGeneration"], lambda found: found == 2, **SOON)
    assert seen(api, pod) == ("Running", "running", None, "web", 0)


def test_image_that_cannot_be_had_is_waited_for(bed, api, pod):
    set_image(api, pod, "missing")
    waiting = ("Running", "waiting", "ImagePullBackOff", "missing", 0)
    wait(lambda: seen(api, pod), lambda reported: reported == waiting, **SOON)
    set_image(api, pod, "web")
    wait(lambda: seen(api, pod), lambda reported: reported == ("Running", "running", None, "web", 1), **SOON)
    reported = [made and made["image_name"] for _, made in bed.supervisor(pod).replaced]
    assert (reported[0], reported[-1], set(reported[:-1])) == (None, "web", {None})


def test_change_while_the_kubelet_is_away_is_found(bed, api, pod):
    bed.kill()
    set_image(api, pod, "other")
    bed.start()
    wait(lambda: seen(api, pod), lambda reported: reported == ("Running", "running", None, "other", 1), **SOON)
    assert (len(bed.supervisor(pod).plans), len(bed.slurm.of(pod["metadata"]["uid"]))) == (1, 1)


def test_kubelet_that_dies_before_the_report_says_it_again(bed, api, pod):
    supervisor = bed.supervisor(pod)
    done, supervisor.on_replace = supervisor.on_replace, None
    set_image(api, pod, "other")
    wait(lambda: supervisor.replaced, **SOON)
    bed.kill()
    supervisor.on_replace = done
    bed.start()
    wait(lambda: seen(api, pod), lambda reported: reported == ("Running", "running", None, "other", 1), **SOON)


def test_supervisor_that_comes_back_without_it_is_reported_again(bed, api, pod):
    supervisor = bed.supervisor(pod)
    supervisor.on_replace = None
    set_image(api, pod, "other")
    wait(lambda: supervisor.replaced, **SOON)
    bed.hang_up(pod)
    wait(lambda: len(supervisor.replaced), lambda found: found == 2, **SOON)


def test_change_before_the_job_begins_is_in_the_plan(bed, api):
    bed.slurm.full = True
    try:
        pod = api.pod()
        [job] = wait(lambda: bed.slurm.of(pod["metadata"]["uid"]), **SOON)
        set_image(api, pod, "other")
        wait(lambda: api.status(pod).get("observedGeneration"), lambda found: found == 2, **SOON)
    finally:
        bed.slurm.full = False
    bed.slurm.start(job.id)
    assert bed.supervisor(pod).plans[0]["containers"][0]["image_name"] == "other"
