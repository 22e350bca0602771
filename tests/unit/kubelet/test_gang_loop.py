"""Pods of a gang are let go together, give back what they have together, and say why they wait."""

import asyncio

import pytest

from isthmus.clients.kube.api import NotFoundError
from isthmus.clients.slurm.commands import SlurmError
from isthmus.kubelet.gangs import groups
from isthmus.kubelet.gangs.loop import NEVER, WAITING, Gangs
from isthmus.model.slurm.cluster import NodeRoom
from tests.support import virtual_time

START_S = 15


class Cluster:
    """A PodGroup of some pods, what Slurm has free, and what each pod was shown."""

    def __init__(self, least=2, free=(4, 4)):
        self.least, self.free, self.version, self.asked, self.shown = least, free, "v1alpha1", 0, {}
        self.gangs, self.tasks, self.withdrawn = Gangs(self, self.rooms, START_S), {}, []

    async def get(self, path):
        if not self.least:
            raise NotFoundError(404, path)
        discovered = {
            "/apis/scheduling.x-k8s.io": {"versions": [{"version": self.version}]},
            f"/apis/scheduling.x-k8s.io/{self.version}": {"resources": [{"name": "podgroups"}]},
        }
        assert path in discovered or path.endswith(("/podgroups/pi", "/podgroups/tau"))
        return discovered.get(path, {"spec": {"minMember": self.least}})

    def rooms(self, partition):
        self.asked += 1
        if self.free is None:
            raise SlurmError("away")
        return [NodeRoom(str(number), free, 1000, 4, 1000) for number, free in enumerate(self.free)]

    def come(self, *uids, cpus=4, group="pi"):
        """Have pods ask for their turn."""
        for uid in uids:

            async def show(reason, message, uid=uid):
                self.shown[uid] = reason, message

            meta = {"name": uid, "uid": uid, "labels": {groups.LABEL: group}}
            options = (f"--cpus-per-task={cpus}", "--mem=100M")
            turn = self.gangs.turn(
                {"metadata": meta, "spec": {}}, options, show, lambda uid=uid: self.withdrawn.append(uid)
            )
            self.tasks[uid] = asyncio.ensure_future(turn)

    def gone(self):
        """The pods that may be submitted."""
        return {uid for uid, task in self.tasks.items() if task.done() and not task.cancelled()}


def play(monkeypatch, story, **cluster):
    """Let a story happen."""
    virtual_time.inline(monkeypatch)

    async def main(_clock):
        made = Cluster(**cluster)
        await story(made)
        made.gangs.stop()
        for task in made.tasks.values():
            task.cancel()

    virtual_time.run(main)


def test_nobody_starts_before_all_are_there(monkeypatch):
    async def story(cluster):
        cluster.come("a")
        await asyncio.sleep(100)
        assert not cluster.gone()
        assert not cluster.asked
        assert cluster.shown["a"] == (
            WAITING,
            "Waits for 1 more of the 2 pods that PodGroup pi needs: none starts before",
        )
        cluster.come("b")
        await asyncio.sleep(0.1)
        assert cluster.gone() == {"a", "b"}

    play(monkeypatch, story)


def test_containers_begin_when_each_job_has_nodes(monkeypatch):
    async def story(cluster):
        cluster.come("a", "b")
        await asyncio.sleep(1)
        together = [asyncio.ensure_future(cluster.gangs.together(uid)) for uid in ("a", "b", "of no gang")]
        cluster.gangs.has_nodes("a")
        await asyncio.sleep(1)
        assert [task.done() for task in together] == [False, False, True]
        cluster.gangs.has_nodes("b")
        await asyncio.sleep(1)
        assert all(task.done() for task in together)
        assert not cluster.withdrawn

    play(monkeypatch, story)


def test_gang_that_does_not_fit_now_waits_and_asks_less_often(monkeypatch):
    async def story(cluster):
        cluster.come("a", "b")
        await asyncio.sleep(1000)
        assert not cluster.gone()
        # A minute between two looks, by chance half of one.
        assert 10 <= cluster.asked <= 40
        assert cluster.shown["a"][1].endswith("waits until its 2 pods fit at once: they need 8 CPUs, 7 are free")
        cluster.free = (4, 4)
        await asyncio.sleep(61)
        assert cluster.gone() == {"a", "b"}

    play(monkeypatch, story, free=(4, 3))


@pytest.mark.parametrize(
    ("cluster", "reason", "message"),
    [
        ({"least": 3}, NEVER, "can never start: its pods need 12 CPUs together, and all nodes have 8; ask for less"),
        ({"least": 0}, WAITING, "PodGroup pi is not there; create it in the namespace of the pod"),
        ({"least": 3, "free": None}, WAITING, "Slurm did not say what is free: away"),
    ],
)
def test_reason_is_shown_to_each(monkeypatch, cluster, reason, message):
    async def story(cluster):
        cluster.come("a", "b", "c")
        await asyncio.sleep(10)
        assert {reported[0] for reported in cluster.shown.values()} == {reason}
        assert all(message in reported[1] for reported in cluster.shown.values())
        assert len(cluster.shown) == 3

    play(monkeypatch, story, **cluster)


def test_all_give_back_what_they_have_when_one_gets_nothing(monkeypatch):
    async def story(cluster):
        cluster.come("a", "b")
        await asyncio.sleep(1)
        cluster.gangs.has_nodes("a")
        cluster.free = (4, 0)
        await asyncio.sleep(START_S)
        assert sorted(cluster.withdrawn) == ["a", "b"]
        cluster.come("a", "b")
        await asyncio.sleep(100)
        assert not cluster.gone()
        cluster.free = (4, 4)
        await asyncio.sleep(61)
        assert cluster.gone() == {"a", "b"}

    play(monkeypatch, story)


def test_pod_that_goes_is_waited_for_no_more(monkeypatch):
    async def story(cluster):
        cluster.come("a", "b")
        await asyncio.sleep(1)
        cluster.gangs.has_nodes("a")
        cluster.gangs.leave("b")
        await cluster.gangs.together("a")
        assert not cluster.withdrawn
        # What comes in its place needs the whole gang no more than one does.
        cluster.come("c")
        await asyncio.sleep(1)
        assert "c" in cluster.gone()

    play(monkeypatch, story)


def test_pod_deleted_while_it_waits_counts_no_more(monkeypatch):
    async def story(cluster):
        cluster.come("a")
        await asyncio.sleep(1)
        cluster.tasks["a"].cancel()
        cluster.come("b")
        await asyncio.sleep(10)
        assert not cluster.gone()

    play(monkeypatch, story)


def test_second_gang_sees_what_the_first_has_left(monkeypatch):
    """Two that need all: never half of the nodes each."""

    async def story(cluster):
        cluster.come("a", "b")
        await asyncio.sleep(1)
        cluster.come("x", "y")
        await asyncio.sleep(1)
        assert cluster.gone() == {"a", "b"}

    play(monkeypatch, story)


def test_pods_of_before_a_crash_are_together(monkeypatch):
    async def story(cluster):
        for uid in ("a", "b"):
            cluster.gangs.adopt({"metadata": {"name": uid, "uid": uid, "labels": {groups.LABEL: "pi"}}, "spec": {}})
        await cluster.gangs.together("a")
        cluster.come("c")
        await asyncio.sleep(1)
        assert cluster.gone() == {"c"}
        assert not cluster.asked

    play(monkeypatch, story)


def test_gang_of_an_unknown_version_says_what_to_do_and_starts_when_it_is_known(monkeypatch):
    async def story(cluster):
        cluster.version = "v9"
        cluster.come("a", "b")
        await asyncio.sleep(100)
        assert not cluster.gone()
        assert "known in v1alpha1: install its kind of scheduler-plugins" in cluster.shown["a"][1]
        cluster.version = "v1alpha1"
        await asyncio.sleep(100)
        assert cluster.gone() == {"a", "b"}

    play(monkeypatch, story)


def test_two_that_need_all_take_turns(monkeypatch):
    """At one moment each would find all nodes free, and get half of them."""

    async def story(cluster):
        cluster.come("a", "b")
        cluster.come("x", "y", group="tau")
        await asyncio.sleep(1)
        assert cluster.gone() == {"a", "b"}
        for uid in ("a", "b"):
            cluster.gangs.has_nodes(uid)
        cluster.free = (0, 0)
        await asyncio.sleep(100)
        assert cluster.gone() == {"a", "b"}
        cluster.free = (4, 4)
        await asyncio.gather(*cluster.tasks.values())
        assert not cluster.withdrawn

    play(monkeypatch, story)
