"""Images of one pod: events when a pull takes long, none when they are cached."""

import asyncio
import re
from types import SimpleNamespace

import pytest

from isthmus.kubelet.images.manager import ImageWaitError
from isthmus.kubelet.images.pulls import Pulls, needs
from isthmus.kubelet.pods.decision.state import Pauses
from isthmus.model.pod_inputs import Image, ImageState
from tests.support import virtual_time
from tests.support.pods.objects import container, pod

POD = pod(container("app", image="large"), container("side", image="small"))
NEVER = ImageWaitError(ImageState("ErrImagePull", "there is none"), 1.0)


class Registry:
    """Gives `large` when it is let, anything else at once."""

    def __init__(self, answer):
        self.answer, self.let, self.failed = answer, asyncio.Event(), None

    def failure(self, name):
        return self.failed if name == "large" else None

    async def get(self, one, secrets):
        # As any look into the cache.
        await asyncio.sleep(0.1)
        if one["image"] == "large":
            await self.let.wait()
            if isinstance(self.answer, Exception):
                raise self.answer
        return Image(f"/{one['image']}", "sha256:1", one["image"])


def pull(*given, **options):
    """Pull a pod's images in virtual time; return the events, the statuses that were shown, and the answers."""
    return virtual_time.run(lambda clock: pulled(*given, **options))


async def pulled(answer, *, pull_s=30, at_once=False, about=POD, failed=None):
    reported, shown, registry = [], [], Registry(answer)
    recorder = SimpleNamespace(
        record=lambda about, kind, reason, message, place: reported.append((reason, message, place))
    )
    pulls = Pulls(SimpleNamespace(images=registry, pauses=Pauses(pull=pull_s), recorder=recorder), about, [])
    registry.failed = failed
    if at_once:
        registry.let.set()

    async def show(status):
        shown.append(status)
        registry.let.set()
        return {**about, "status": status}

    now = await pulls.shown(show)
    return reported, shown, now, await pulls.answers()


def test_cached_images_have_no_events():
    reported, shown, now, (images, states, waits) = pull(None, pull_s=5, at_once=True)
    assert (reported, shown, now, waits) == ([], [], POD, [])
    assert (set(images), states["app"].id) == ({"large", "small"}, "large")


def test_image_that_takes_long_has_events():
    reported, shown, now, (images, _, _) = pull(None)
    assert reported[0] == ("Pulling", 'Pulling image "large"', "spec.containers{app}")
    assert (reported[1][0], reported[1][2], len(reported)) == ("Pulled", "spec.containers{app}", 2)
    assert re.fullmatch(r'Pulled image "large" in \d+\.\d+.*', reported[1][1])
    assert now["status"] == shown[0]
    waiting = [one["state"]["waiting"]["reason"] for one in shown[0]["containerStatuses"]]
    assert (shown[0]["phase"], waiting) == ("Pending", ["ContainerCreating"] * 2)
    assert set(images) == {"large", "small"}


def test_image_that_is_tried_again_still_says_why_it_failed():
    _, shown, _, _ = pull(None, failed=NEVER.state)
    waiting = [one["state"]["waiting"] for one in shown[0]["containerStatuses"]]
    assert [one["reason"] for one in waiting] == ["ErrImagePull", "ContainerCreating"]
    assert waiting[0]["message"] == "there is none"


def test_image_that_cannot_be_pulled_has_no_event_that_it_was():
    reported, _, _, (images, states, waits) = pull(NEVER)
    assert [reason for reason, _, _ in reported] == ["Pulling"]
    assert (set(images), states["app"].reason, waits) == ({"small"}, "ErrImagePull", [NEVER])


def test_other_errors_are_raised():
    with pytest.raises(OSError, match="disk"):
        pull(OSError("disk"))


def test_image_of_a_volume_is_needed_by_those_who_mount_it():
    reported = {"name": "data", "image": {"reference": "kitten:1", "pullPolicy": "Never"}}
    mounts = [{"name": "data", "mountPath": "/data"}]
    whole = pod(
        container("app", volumeMounts=mounts), container("side"), volumes=[reported, {"name": "x", "emptyDir": {}}]
    )
    found = needs(whole)
    assert [(need.own, need.place) for need in found] == [
        ("app", "spec.containers{app}"),
        ("side", "spec.containers{side}"),
        ("", ""),
    ]
    assert (found[2].asks, found[2].waits) == ({"image": "kitten:1", "imagePullPolicy": "Never"}, ("app",))


def test_volume_whose_image_cannot_be_had_holds_its_containers_back():
    mounts = [{"name": "data", "mountPath": "/data"}]
    whole = pod(
        container("app", image="small", volumeMounts=mounts),
        container("side", image="tiny"),
        volumes=[{"name": "data", "image": {"reference": "large"}}],
    )
    _, _, _, (images, states, waits) = pull(NEVER, about=whole)
    assert (set(images), waits) == ({"small", "tiny"}, [NEVER])
    assert states == {"app": ImageState("ErrImagePull", "there is none", "small"), "side": ImageState(id="tiny")}


def test_image_of_a_volume_is_no_containers_own():
    mounts = [{"name": "data", "mountPath": "/data"}]
    volumes = [{"name": "data", "image": {"reference": "large"}}]
    whole = pod(container("app", image="small", volumeMounts=mounts), volumes=volumes)
    reported, _, _, (images, states, _) = pull(None, about=whole)
    assert (set(images), states) == ({"small", "large"}, {"app": ImageState(id="small")})
    assert reported[0] == ("Pulling", 'Pulling image "large"', "")
