"""Images of one pod: told of when they take long, silent when they are there."""

import asyncio
import re
from types import SimpleNamespace

import pytest

from isthmus.kubelet.images.manager import ImageWaitError
from isthmus.kubelet.images.pulls import Pulls, needs
from isthmus.kubelet.pods.decision.state import Pauses
from isthmus.model.pod_inputs import Image, ImageState
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
        await asyncio.sleep(0.001)
        if one["image"] == "large":
            await self.let.wait()
            if isinstance(self.answer, Exception):
                raise self.answer
        return Image(f"/{one['image']}", "sha256:1", one["image"])


async def pulled(answer, *, pull_s=0.3, at_once=False, about=POD, failed=None):
    """Pull a pod's images; return what was told, what was shown, and the answers."""
    told, shown, registry = [], [], Registry(answer)
    recorder = SimpleNamespace(tell=lambda about, kind, reason, message, place: told.append((reason, message, place)))
    pulls = Pulls(SimpleNamespace(images=registry, pauses=Pauses(pull=pull_s), recorder=recorder), about, [])
    registry.failed = failed
    if at_once:
        registry.let.set()

    async def show(status):
        shown.append(status)
        registry.let.set()
        return {**about, "status": status}

    now = await pulls.shown(show)
    return told, shown, now, await pulls.answers()


def test_images_that_are_there_are_not_told_of():
    told, shown, now, (images, states, waits) = asyncio.run(pulled(None, pull_s=5, at_once=True))
    assert (told, shown, now, waits) == ([], [], POD, [])
    assert (set(images), states["app"].id) == ({"large", "small"}, "large")


def test_image_that_takes_long_is_told_of():
    told, shown, now, (images, _, _) = asyncio.run(pulled(None))
    assert told[0] == ("Pulling", 'Pulling image "large"', "spec.containers{app}")
    assert (told[1][0], told[1][2], len(told)) == ("Pulled", "spec.containers{app}", 2)
    assert re.fullmatch(r'Pulled image "large" in \d+\.\d+.*', told[1][1])
    assert now["status"] == shown[0]
    waiting = [one["state"]["waiting"]["reason"] for one in shown[0]["containerStatuses"]]
    assert (shown[0]["phase"], waiting) == ("Pending", ["ContainerCreating"] * 2)
    assert set(images) == {"large", "small"}


def test_image_that_is_tried_again_still_says_why_it_failed():
    _, shown, _, _ = asyncio.run(pulled(None, failed=NEVER.state))
    waiting = [one["state"]["waiting"] for one in shown[0]["containerStatuses"]]
    assert [one["reason"] for one in waiting] == ["ErrImagePull", "ContainerCreating"]
    assert waiting[0]["message"] == "there is none"


def test_image_that_cannot_be_had_is_not_told_as_pulled():
    told, _, _, (images, states, waits) = asyncio.run(pulled(NEVER))
    assert [reason for reason, _, _ in told] == ["Pulling"]
    assert (set(images), states["app"].reason, waits) == ({"small"}, "ErrImagePull", [NEVER])


def test_other_errors_are_raised():
    with pytest.raises(OSError, match="disk"):
        asyncio.run(pulled(OSError("disk")))


def test_image_of_a_volume_is_needed_by_those_who_mount_it():
    told = {"name": "data", "image": {"reference": "kitten:1", "pullPolicy": "Never"}}
    mounts = [{"name": "data", "mountPath": "/data"}]
    whole = pod(container("app", volumeMounts=mounts), container("side"), volumes=[told, {"name": "x", "emptyDir": {}}])
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
    _, _, _, (images, states, waits) = asyncio.run(pulled(NEVER, about=whole))
    assert (set(images), waits) == ({"small", "tiny"}, [NEVER])
    assert states == {"app": ImageState("ErrImagePull", "there is none", "small"), "side": ImageState(id="tiny")}


def test_image_of_a_volume_is_no_containers_own():
    mounts = [{"name": "data", "mountPath": "/data"}]
    volumes = [{"name": "data", "image": {"reference": "large"}}]
    whole = pod(container("app", image="small", volumeMounts=mounts), volumes=volumes)
    told, _, _, (images, states, _) = asyncio.run(pulled(None, about=whole))
    assert (set(images), states) == ({"small", "large"}, {"app": ImageState(id="small")})
    assert told[0] == ("Pulling", 'Pulling image "large"', "")
