"""Runs that are cut by SIGKILL, as by a reboot of the deployer: the next one makes up for what they owed."""

import json
import os
import time
from random import Random

import pytest

from tests.support.clusters import jobs, other_tree, playbooks, site_state

TIMEOUT_S = 17  # neither Slurm's own MessageTimeout nor the test bed's
LIVE = f"scontrol show config | grep -q '^MessageTimeout *= {TIMEOUT_S} sec'"
FRAGMENT = "plugstack.conf.d/site.conf"
# In each layer something else: for a daemon that restarts, one that reads again, a timer, and a file that goes again.
THERE = {
    "etcd_quota_mib": 1999,
    "etcd_snapshot_calendar": "*:17",
    "network_dns_rate": 4999,
    "slurm_conf_files": {FRAGMENT: "# a site's own\n"},
    "slurm_mpi_conf_extra": {"PMIxTimeout": 299},
    "kubernetes_snapshot_s": 31,
    "apptainer_conf": {"sessiondir max size": 65},
}
BACK = ("-e", json.dumps({"slurm_conf_files": {FRAGMENT: ""}}))
QUICK = ("playbooks/slurm.yml", "playbooks/network.yml")
# Where a run of another version of the tree is cut: behind its files, with half of what reads them.
OTHERS_QUICK = (("playbooks/slurm.yml", "TASK [slurm : Run the other daemons"),)
OTHERS_WHOLE = (("playbooks/base.yml", "TASK [base : Install from the wheels"), *OTHERS_QUICK)


@pytest.fixture
def there(controller, whole):
    """Other settings in several layers, as extra variables."""
    settings = controller.variables["slurm_conf_extra"] | {"MessageTimeout": TIMEOUT_S}
    return "-e", json.dumps(THERE | {"slurm_conf_extra": settings})


def cut_at_random(books, cuts):
    """Cut runs of playbooks (with how many tasks each has) at random tasks, each further than the one before."""
    seed = int(os.environ.get("CUT_SEED", time.time()))
    print(f"CUT_SEED={seed}")
    places = [(book, task) for book, tasks in books.items() for task in range(1, tasks)]
    for place in sorted(Random(seed).sample(range(len(places)), cuts)):  # noqa: S311
        book, task = places[place]
        print(f"{book} cut after {task} tasks: {playbooks.cut_after(task, book, *BACK)}", flush=True)


@pytest.mark.parametrize(
    ("books", "cuts", "others"),
    [
        pytest.param(QUICK, 5, OTHERS_QUICK, id="5"),
        pytest.param(("site.yml",), 20, OTHERS_WHOLE, id="20", marks=pytest.mark.full),
    ],
)
def test_cut_runs_leave_what_one_run_leaves(books, cuts, others, controller, nodes, computes, there, tmp_path):
    """Of this tree there, then at random tasks and of another version back: what runs now is what one run made."""
    before = site_state.look(nodes.values(), controller)
    if site_state.is_behind(before):
        playbooks.succeed("cut_before", *books, *BACK)
        before = site_state.look(nodes.values(), controller)
    try:
        playbooks.cut("TASK [slurm : Run munge and MariaDB]", *books, *there)
        assert f"MessageTimeout={TIMEOUT_S}" in controller.output("cat /etc/slurm/slurm.conf")
        assert controller.run(LIVE).rc != 0
        whole = {book: playbooks.succeed("cut_there", book, *there).output.count("TASK [") for book in books}
        assert controller.run(LIVE).rc == 0
        assert site_state.differences(before, site_state.look(nodes.values(), controller))
        cut_at_random(whole, cuts)
        tree = other_tree.make(tmp_path / "tree")
        for book, at in others:
            playbooks.cut(at, book, *BACK, tree=tree)
    finally:
        playbooks.succeed("cut_back", *books, *BACK)
        jobs.wait_for_nodes(controller, *(node.name for node in computes))
    differences = site_state.differences(before, site_state.look(nodes.values(), controller))
    assert not differences, json.dumps(differences, indent=1)
