"""kill -9 of the kubelet at twenty random moments while fifty pods come and go: none lost, none run twice.

The control plane starts a kubelet that dies again and again after a growing pause, at last of a minute; so each kubelet
finds pods that were made and deleted while there was none, and dies while it deals with them. SEED=n repeats the dice.
"""

import os
import random
import secrets
import time
from dataclasses import dataclass, field

import pytest

from tests.support.clusters import kubelet_kills
from tests.support.clusters.user_clusters import fresh, namespace, site_images
from tests.support.wait import wait

KILLS = 20
ENDING = [f"ends-{number}" for number in range(35)]
STAYING = [f"stays-{number}" for number in range(15)]
# Of a kubelet's life.
LONGEST_S = 5.0
CONVERGED_S = 10
ENDED_S = 180


@pytest.fixture(scope="module")
def space(login, controller, user):
    if login.run("test -e /etc/isthmus/kubernetes.json").rc:
        pytest.skip("the site has no layer kubernetes")
    manifest = kubelet_kills.MANIFEST.read_text()
    with (
        fresh(login, user) as cluster,
        namespace(cluster, "kubelet-kills", site_images(controller), manifest) as made,
    ):
        made.ready("pod/reader")
        yield made


@dataclass
class Round:
    """What is made and deleted before a kill, and how long the kubelet may deal with it; seconds."""

    made: dict[str, float] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    life_s: float = 0.0


def rounds(dice):
    """Return what happens: all pods are made before the last round, those that stay deleted in a later one."""
    plan = [Round(life_s=dice.uniform(0, LONGEST_S)) for _ in range(KILLS)]
    for name in ENDING:
        dice.choice(plan[:-1]).made[name] = round(dice.uniform(0, 8), 1)
    for name in STAYING:
        made, deleted = sorted(dice.sample(range(KILLS), 2))
        plan[made].made[name] = 1000
        plan[deleted].deleted.append(name)
    return plan


def test_rounds_make_and_delete_each_pod_once():
    plan = rounds(random.Random(1))  # noqa: S311
    assert sorted(name for one in plan for name in one.made) == sorted(ENDING + STAYING)
    assert sorted(name for one in plan for name in one.deleted) == sorted(STAYING)


def live(space, nodes, plan):
    """Go through it all."""
    for one in plan:
        if one.made:
            kubelet_kills.make(space, one.made)
        if one.deleted:
            kubelet_kills.delete(space, one.deleted)
        time.sleep(one.life_s)
        kubelet_kills.kill(space.cluster, nodes)


def queued(space, controller):
    """Return the names of the user's jobs."""
    return set(controller.output(f"squeue --noheader --user={space.cluster.user} --format=%j").split())


def phases(space):
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in space.get("pods")["items"]}


def converge(space, controller):
    """Wait until the API server knows what Slurm knew when the last kubelet came; return how long that took."""
    begin = time.monotonic()
    over = set(ENDING) & kubelet_kills.starts(space).keys() - queued(space, controller)

    def behind():
        reported, jobs = phases(space), queued(space, controller)
        late = {name: reported.get(name, "lost") for name in over if reported.get(name) != "Succeeded"}
        return late | {name: reported.get(name, "has a job") for name in STAYING if name in reported or name in jobs}

    wait(behind, lambda left: not left, timeout_s=CONVERGED_S - (time.monotonic() - begin), interval_s=0.2)
    return time.monotonic() - begin


def test_twenty_kills_lose_no_pod_and_run_none_twice(space, nodes, controller):
    seed = int(os.environ.get("SEED", secrets.randbelow(1 << 32)))
    print(f"SEED={seed}")
    reader = space.container("reader", "reader")["containerID"]
    live(space, nodes, rounds(random.Random(seed)))  # noqa: S311
    print(f"converged in {converge(space, controller):.1f} s")
    expected = dict.fromkeys(ENDING, "Succeeded") | {"reader": "Running"}
    wait(lambda: phases(space), lambda reported: reported == expected, timeout_s=ENDED_S, interval_s=1)
    wait(lambda: queued(space, controller), lambda names: names == {"isthmus-control-plane", "reader"})
    starts = kubelet_kills.starts(space)
    assert {name: jobs for name, jobs in starts.items() if len(jobs) != 1} == {}
    assert set(ENDING) <= starts.keys()
    after = space.container("reader", "reader")
    assert (after["containerID"], after["restartCount"]) == (reader, 0)
