"""Following a collection of an API server in memory, which passes the cases of the real one."""

import asyncio

import pytest

from isthmus.kubelet.objects.watching import follow
from isthmus.support.backoff import Backoff
from tests.support import virtual_time
from tests.support.fakes import api_server_cases
from tests.support.fakes.api_server import FakeKube

SPACE = "default"
LONGEST_S = 30
PATH = api_server_cases.path(SPACE)


@pytest.mark.parametrize("case", api_server_cases.CASES, ids=lambda case: case.__name__)
def test_fake_server_passes_the_case(case):
    asyncio.run(case(FakeKube(), SPACE))


class Follower:
    """What is known by following."""

    def __init__(self):
        self.lists, self.known, self.kube = 0, {}, FakeKube()

    def listed(self, found):
        self.lists += 1
        self.known = {one["metadata"]["name"]: one for one in found}

    def changed(self, kind, found):
        if kind == "DELETED":
            del self.known[found["metadata"]["name"]]
        else:
            self.known[found["metadata"]["name"]] = found

    async def until(self, names):
        async with asyncio.timeout(2 * LONGEST_S):
            while {*self.known} != names:
                await asyncio.sleep(0.1)


def followed(use):
    """Use a follower in virtual time."""
    backoff = Backoff(1, LONGEST_S)

    async def both(clock):
        follower = Follower()
        await follower.kube.create(PATH, api_server_cases.config("a"))
        task = asyncio.create_task(follow(follower.kube, PATH, {}, follower.listed, follower.changed, backoff))
        await follower.until({"a"})
        await use(follower)
        task.cancel()

    virtual_time.run(both)


def test_changes_are_followed():
    async def use(follower):
        await follower.kube.create(PATH, api_server_cases.config("b"))
        await follower.kube.delete(api_server_cases.path(SPACE, "a"))
        await follower.until({"b"})
        assert follower.lists == 1

    followed(use)


def test_broken_watch_goes_on_from_where_it_was():
    async def use(follower):
        await follower.kube.set_down(True)
        await asyncio.sleep(600)
        await follower.kube.set_down(False)
        await follower.kube.create(PATH, api_server_cases.config("b"))
        await follower.until({"a", "b"})
        assert follower.lists == 1

    followed(use)


def test_version_that_is_too_old_means_a_new_list():
    async def use(follower):
        await follower.kube.set_down(True)
        await asyncio.sleep(600)
        follower.kube.objects.clear()
        follower.kube.oldest = 10**6
        await follower.kube.set_down(False)
        await follower.until(set())
        assert follower.lists > 1

    followed(use)


def test_items_of_a_list_know_their_kind():
    async def use(follower):
        assert follower.known["a"]["kind"] == "ConfigMap"

    followed(use)
