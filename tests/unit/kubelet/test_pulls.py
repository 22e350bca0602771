"""Images of one pod: told of when they take long, silent when they are there."""

import asyncio
from types import SimpleNamespace

import pytest

from isthmus.kubelet.images import ImageWaitError
from isthmus.kubelet.parts import Pauses
from isthmus.kubelet.pulls import Pulls
from isthmus.model.pod_inputs import Image, ImageState
from tests.support.pods import container, pod

POD = pod(container("app", image="large"), container("side", image="small"))
NEVER = ImageWaitError(ImageState("ErrImagePull", "there is none"), 1.0)


class Registry:
    """Gives `large` when it is let, anything else at once."""

    def __init__(self, answer):
        self.answer, self.let = answer, asyncio.Event()

    async def get(self, one, secrets):
        # As any look into the cache.
        await asyncio.sleep(0.001)
        if one["image"] == "large":
            await self.let.wait()
            if isinstance(self.answer, Exception):
                raise self.answer
        return Image(f"/{one['image']}", "sha256:1", one["image"])


async def pulled(answer, *, pull_s=0.05, at_once=False):
    """Pull a pod's images; return what was told, what was shown, and the answers."""
    told, shown, registry = [], [], Registry(answer)
    recorder = SimpleNamespace(tell=lambda about, kind, reason, message, place: told.append((reason, message, place)))
    pulls = Pulls(SimpleNamespace(images=registry, pauses=Pauses(pull=pull_s), recorder=recorder), POD, [])
    if at_once:
        registry.let.set()

    async def show(status):
        shown.append(status)
        registry.let.set()
        return {**POD, "status": status}

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
    assert told[1][1].startswith('Pulled image "large" in 0.')
    assert now["status"] == shown[0]
    waiting = [one["state"]["waiting"]["reason"] for one in shown[0]["containerStatuses"]]
    assert (shown[0]["phase"], waiting) == ("Pending", ["ContainerCreating"] * 2)
    assert set(images) == {"large", "small"}


def test_image_that_cannot_be_had_is_not_told_as_pulled():
    told, _, _, (images, states, waits) = asyncio.run(pulled(NEVER))
    assert [reason for reason, _, _ in told] == ["Pulling"]
    assert (set(images), states["app"].reason, waits) == ({"small"}, "ErrImagePull", [NEVER])


def test_other_errors_are_raised():
    with pytest.raises(OSError, match="disk"):
        asyncio.run(pulled(OSError("disk")))
