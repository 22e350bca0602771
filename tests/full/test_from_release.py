"""The last release's site, to which an admin brings this tree with site.yml while users' jobs and a cluster run.

docs/admins/upgrades.md, "Isthmus itself". A test bed of its own, which the release's tree makes with its own tools: an
hour with the programs in the cache, of which a release may have others. The order of the tests matters.
"""

import json
import re
import shutil
import subprocess
import time

import pytest
import yaml

from tests.bench import results
from tests.support.clusters import asking, jobs, playbooks
from tests.support.clusters import cluster as clusters
from tests.support.clusters.cluster import ROOT
from tests.support.clusters.user_clusters import UserCluster, site_images
from tests.support.wait import wait

NAME = "from-release"
BEFORE = yaml.safe_load((ROOT / "docs/releases.yml").read_text())["releases"][-1]
# The main job has no part in this; a tree of before has no such variable.
QUIET = ("-e", "main_job_run=false", "-e", "main_job_hpcc=false")
# What an admin must change in the inventory of 0.1.0: the layers' own packages are in the image since.
RENAMED = (r"^provider_local_packages_extra:\n(?:  - .*\n)+", "image_packages_extra: [hpcc, tmux]\n")
# Link of the site's inventory -> what of the tree it leads to.
LINKS = {"groups.yml": "groups.yml", "group_vars/all/00_common": "group_vars/all"}
CONNECT = "python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)'"
WEB_PORT = 8080


def stand_on(inventory, tree):
    """Have the site's inventory use the common part of a tree."""
    for link, target in LINKS.items():
        (inventory / link).unlink(missing_ok=True)
        (inventory / link).symlink_to(tree / "inventories/common" / target)


@pytest.fixture(scope="module")
def figures():
    """What was measured, which is written even when a test failed."""
    found = {"release": BEFORE["version"], "commit": BEFORE["commit"], "seconds": {}}
    yield found
    results.save("from_release", **found)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The release's files."""
    made = subprocess.run(["git", "-C", ROOT, "archive", BEFORE["commit"]], capture_output=True, check=False)
    assert made.returncode == 0, f"{made.stderr.decode()}: clone the whole history"
    folder = tmp_path_factory.mktemp("release")
    subprocess.run(["tar", "--extract", "--directory", folder], input=made.stdout, check=True)
    yield folder
    # Its tools are half a GiB.
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def inventory(tree, tmp_path_factory):
    """The site's own: the release's test bed, and what names it to playbooks and tests."""
    folder = tmp_path_factory.mktemp("inventory") / "site"
    shutil.copytree(tree / "inventories/local", folder, symlinks=True)
    stand_on(folder, tree)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NAME", NAME)
        patch.setenv("ISTHMUS_INVENTORY", str(folder))
        yield folder


def timed(figures, name, run, *arguments, **options):
    """Run a playbook, and note its time."""
    begun_s = time.monotonic()
    done = run(f"from_release_{name}", *arguments, **options)
    figures["seconds"][name] = round(time.monotonic() - begun_s)
    return done


@pytest.fixture(scope="module")
def site(tree, inventory, figures):
    """The site as the release makes it."""

    def remove():
        stand_on(inventory, ROOT)
        done = playbooks.play("from_release_remove", "playbooks/teardown.yml")
        assert done.rc == 0, "see results/logs/from_release_remove.log"

    remove()
    stand_on(inventory, tree)
    make = ("make", "-C", str(tree), "testbed", f"ARGS=-i {inventory} {' '.join(QUIET[2:])}")
    # Neither this tree's package nor words of the make that runs these tests.
    environment = {"PYTHONPATH": "", "MAKEFLAGS": ""}
    try:
        made = timed(figures, "before", playbooks.run, *make, environment=environment)
        assert made.rc == 0, "see results/logs/from_release_before.log"
        yield clusters.load([str(inventory)])
    finally:
        remove()


@pytest.fixture(scope="module")
def person(site):
    """A user without other jobs; the release's main job is the first user's."""
    return site.users[1]


@pytest.fixture(scope="module")
def load(site, person):
    """Jobs that run throughout, by name."""
    return asking.begin(site.submit, site.controller, person, [node.name for node in site.computes])


@pytest.fixture(scope="module")
def kubernetes(site, person):
    """The user's cluster, with a Deployment of one pod."""
    found = UserCluster(site.submit, person)
    found.up()
    image = site_images(site.controller)["busybox"]
    found.kubectl(f"create deployment web --image={image} -- httpd -f -p {WEB_PORT}")
    found.kubectl("rollout status deployment/web --timeout=180s")
    return found


def pods(kubernetes):
    return json.loads(kubernetes.kubectl("get pods --selector app=web --output json"))["items"]


@pytest.fixture(scope="module")
def pod(kubernetes):
    """The pod before the upgrade."""
    (found,) = pods(kubernetes)
    return found


@pytest.fixture(scope="module")
def upgraded(site, inventory, load, kubernetes, pod, figures):
    """This tree's run over the release's site."""
    stand_on(inventory, ROOT)
    file = inventory / "group_vars/all/testbed.yml"
    text, count = re.subn(*RENAMED, file.read_text(), flags=re.MULTILINE)
    assert count == 1
    file.write_text(text)
    return timed(figures, "after", playbooks.play, "site.yml", *QUIET)


def test_site_yml_of_this_tree_ends_well(upgraded, site):
    assert upgraded.rc == 0, "see results/logs/from_release_after.log"
    assert upgraded.changed >= set(site.nodes)


def test_jobs_with_a_pod_network_ran_on(upgraded, site, load):
    asking.assert_ran_on(site.controller, *load.values())


def test_client_was_answered_throughout(upgraded, site, person, load, figures):
    figures["client"] = asking.gaps(site.submit, person, load["client"])
    assert figures["client"]["whole_s"] > figures["seconds"]["after"]
    assert figures["client"]["longest_gap_s"] <= asking.LONGEST_GAP_S


def test_users_cluster_answers_and_its_pod_is_the_same(upgraded, kubernetes, pod):
    (now,) = pods(kubernetes)
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]
    (container,) = now["status"]["containerStatuses"]
    assert (container["ready"], container["restartCount"]) == (True, 0)
    assert now["status"]["podIP"] == pod["status"]["podIP"]
    assert kubernetes.kubectl(f"exec {pod['metadata']['name']} -- echo here") == "here"
    assert kubernetes.try_kubectl(f"logs {pod['metadata']['name']}").rc == 0


def test_kubelet_of_before_runs_new_pods(upgraded, kubernetes):
    kubernetes.kubectl("scale deployment web --replicas=2")
    kubernetes.kubectl("rollout status deployment/web --timeout=180s")
    assert len(pods(kubernetes)) == 2


def test_new_jobs_reach_jobs_and_pods_of_before(upgraded, site, person, load, pod):
    server = asking.address(site.submit, person, load["server"])
    for node in site.computes:
        step = f"srun --mem=50 --pod-network --nodelist={node.name}"
        for address, port in ((server, 8000), (pod["status"]["podIP"], WEB_PORT)):
            site.submit.run_as(person, f"{step} {CONNECT} {address} {port}")


def test_new_jobs_ranks_meet_in_pods(upgraded, site, person):
    options = "--pod-network --nodes=2 --ntasks-per-node=1 --mem-per-cpu=50"
    seen = site.submit.run_as(person, f"srun {options} sh -c 'getent hosts pod0 && getent hosts pod1'")
    assert len(seen.splitlines()) == 4


def test_second_run_changes_nothing(upgraded, site, figures):
    again = timed(figures, "again", playbooks.play, "site.yml", *QUIET)
    assert again.rc == 0, "see results/logs/from_release_again.log"
    assert again.changed == set()


def test_cluster_that_comes_back_is_of_this_tree_with_its_data(upgraded, site, kubernetes, figures):
    deployment = json.loads(kubernetes.kubectl("get deployment web --output json"))["metadata"]["uid"]
    kubernetes.down()
    begun_s = time.monotonic()
    assert kubernetes.up()["created"]
    figures["seconds"]["up"] = round(time.monotonic() - begun_s)
    assert json.loads(kubernetes.kubectl("get deployment web --output json"))["metadata"]["uid"] == deployment
    kubernetes.kubectl("rollout status deployment/web --timeout=180s")
    newest = yaml.safe_load((ROOT / "artifacts.yml").read_text())["releases"]["kubernetes"]["version"]
    assert kubernetes.status()["version"] == f"v{newest}"
    kubernetes.down("--purge --yes")


def test_jobs_of_before_end_and_leave_nothing(upgraded, site, person, load):
    jobs.cancel(site.controller, *load.values())
    looks = " ".join(f"/run/netns/isthmus-{job}" for job in load.values())
    for node in site.computes:
        wait(lambda node=node: node.run(f"ls -d {looks} 2>/dev/null").stdout.split(), lambda left: left == [])
