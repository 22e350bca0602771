"""Nodes that came up by ParallelCluster's scripts; molecule's scenario `parallelcluster` has such."""

import json

import pytest

from tests.support.wait import wait

ACTION = "/root/run_action.sh s3://site/isthmus/mol/bootstrap.sh"
FOLDER = "s3://site/isthmus/mol"
SHARED = "/opt/slurm/etc/isthmus"
LOG = "/var/log/parallelcluster/isthmus-bootstrap.log"


@pytest.fixture(scope="session")
def joining(cluster):
    """The nodes, by name."""
    found = {node.name: node for node in cluster.part("joining")}
    if not found or not next(iter(found.values())).host.file("/root/boot.sh").exists:
        pytest.skip("no node of this site came up by ParallelCluster's scripts")
    return found


@pytest.fixture(scope="module", autouse=True)
def all_joined(joining):
    """Also the one that came up before the cluster had Isthmus."""
    for node in joining.values():
        wait(
            lambda node=node: (
                node.run("test -e /var/lib/isthmus/node/joined.json && ! test -e /etc/isthmus/join").rc == 0
            )
        )


def test_slurm_is_of_another_version_than_the_distributions(controller):
    own = controller.output("/opt/slurm/bin/sinfo --version").split()[1]
    assert own not in controller.output("apt-cache policy slurmd")


def test_daemons_run_and_nobody_waits_for_the_cluster_any_more(joining):
    for node in joining.values():
        wait(
            lambda node=node: (
                node.output("systemctl is-active isthmus-networkd isthmus-dns slurmd").split() == ["active"] * 3
            )
        )
        assert node.run("systemctl is-active isthmus-await.timer").rc != 0


def test_node_is_named_and_found_as_parallelcluster_does(joining):
    for name, node in joining.items():
        reported = json.loads(node.output("cat /etc/isthmus/network.json"))
        assert (reported["node"], reported["address"]) == (name, node.variables["address"])


def test_jobs_run_on_each_with_and_without_a_pod_network(joining, login, user):
    for name in joining:
        assert login.run_as(user, f"srun --nodelist={name} hostname") == name
        own, other = (
            login.run_as(user, f"srun --nodelist={name} {word} ip -4 -br address") for word in ("--pod-network", "")
        )
        assert own != other


def test_pods_run_on_each(joining, mine, images):
    for name in joining:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"on-{name}", "annotations": {"slurm-job.hpk.io/flags": f"--nodelist={name}"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {"name": "c", "image": images["busybox"], "command": ["sh", "-c", "cat /proc/sys/kernel/hostname"]}
                ],
            },
        }
        mine.kubectl("apply -f -", json.dumps(pod))
        mine.kubectl(f"wait --for=jsonpath={{.status.phase}}=Succeeded pod/on-{name} --timeout=120s")


def test_token_is_roots_alone(controller, joining, login, user):
    assert controller.output(f"stat --format=%U:%a {SHARED} {SHARED}/join") == "root:700\nroot:600"
    assert login.try_as(user, f"cat {SHARED}/join").rc != 0


def test_head_nodes_action_again_changes_nothing(controller):
    files = "sha256sum /opt/slurm/etc/plugstack.conf /etc/systemd/system/isthmus-token.* /opt/isthmus/program"
    before = controller.output(files)
    controller.output(f"{ACTION} head mol-parallelcluster {FOLDER}")
    assert controller.output(files) == before
    assert controller.output("grep -c plugstack.conf.d /opt/slurm/etc/plugstack.conf") == "1"


def test_compute_nodes_action_again_changes_nothing(joining):
    node = next(iter(joining.values()))
    began = node.output("systemctl show --property=ExecMainStartTimestampMonotonic slurmd isthmus-networkd")
    node.output(f"{ACTION} compute mol-parallelcluster {FOLDER}")
    assert node.output("systemctl show --property=ExecMainStartTimestampMonotonic slurmd isthmus-networkd") == began


def test_admins_find_what_was_done(joining):
    for node in joining.values():
        assert "compute of mol-parallelcluster: done" in node.output(f"cat {LOG}")
        assert "isthmus-bootstrap" in node.output("journalctl --identifier isthmus-bootstrap --no-pager")


BAD = {
    "cloud mol s3://site/isthmus/mol": "role cloud is none of head, login, compute, image",
    "compute": "three arguments are needed",
    "compute mol s3://site/elsewhere": "s3://site/elsewhere/current cannot be read; run playbooks/create.yml",
}


@pytest.mark.parametrize("arguments", BAD)
def test_wrong_call_fails_with_its_remedy(joining, arguments):
    node = next(iter(joining.values()))
    refused = node.run(f"{ACTION} {arguments}")
    assert refused.rc != 0
    assert BAD[arguments] in refused.stderr


def test_archive_that_is_another_is_refused(joining, controller):
    node = next(iter(joining.values()))
    wrong = "0" * 64
    controller.output(
        f"cp -r /home/.s3/site/isthmus/mol /home/.s3/site/wrong; echo {wrong} > /home/.s3/site/wrong/current"
    )
    controller.output(f"echo no archive > /home/.s3/site/wrong/content/{wrong}.tar")
    try:
        refused = node.run(f"{ACTION} compute mol s3://site/wrong")
        assert refused.rc != 0
        assert f"content/{wrong}.tar has sha256" in refused.stderr
    finally:
        controller.output("rm -r /home/.s3/site/wrong")
