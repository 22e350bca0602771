import json

import pytest

from tests.support.clusters import jobs, playbooks
from tests.support.clusters.cluster import inventory_sources, load

EXTRA = "tests/site/files/c3.yml"
NEW = "c3"


@pytest.fixture(scope="module")
def job(login, controller, user):
    """A job that runs on every node meanwhile."""
    with jobs.running(login, controller, user, "--mem-per-cpu=10 --time=30", "sleep 1500") as running:
        yield running


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Where the playbook writes how often each role went to each host."""
    return tmp_path_factory.mktemp("add_nodes") / "counts.json"


@pytest.fixture(scope="module")
def added(job, counts):
    """The new node, removed again even when a test fails."""
    arguments = ("-i", EXTRA, "-e", f"nodes={NEW}")
    environment = {"ISTHMUS_TASK_COUNTS": str(counts)}
    yield playbooks.succeed("add_nodes", *arguments, "playbooks/add_nodes.yml", environment=environment)
    # By then it mostly has gone, as a node that is dead: two tasks wait for it to answer.
    words = (*arguments, "-e", "remove_force=true", "playbooks/remove_nodes.yml")
    playbooks.succeed("remove_nodes_after", *words, environment={"ANSIBLE_TIMEOUT": "10"})


def test_adding_touches_the_new_node_and_the_controller_alone(added, controller):
    assert set(added.recap) <= {"localhost", controller.name, NEW}


def test_slurm_on_the_controller_is_given_its_nodes_alone(added, counts, controller):
    """It is looked at, its files are written, its daemon reads them; no packages, accounts or secrets."""
    assert json.loads(counts.read_text())["slurm"][controller.name] == 3


def test_running_job_goes_on(added, controller, job):
    assert jobs.state(controller, job) == "RUNNING"
    assert jobs.fields(controller.output(f"scontrol show job {job}"))["Restarts"] == "0"


def test_new_node_runs_jobs(added, controller, login, user):
    jobs.wait_for_nodes(controller, NEW)
    assert login.run_as(user, f"srun --nodelist={NEW} hostname") == NEW


def test_new_node_runs_containers(added, controller, login, user):
    known = json.loads(controller.output("cat /etc/isthmus/images.json"))["images"]
    image = login.run_as(user, f"isthmus pull {known['busybox']['reference']}")
    assert login.run_as(user, f"srun --nodelist={NEW} apptainer --silent exec {image} hostname") == NEW


def test_new_node_runs_users_clusters(added, controller):
    new = load([*inventory_sources(), EXTRA]).nodes[NEW]
    files = "sha256sum /etc/isthmus/kubernetes.json /opt/isthmus/share/control-plane-*.squashfs"
    assert new.output(files) == controller.output(files)


def test_new_node_has_users_and_home(added, cluster):
    new = load([*inventory_sources(), EXTRA]).nodes[NEW]
    assert new.output(f"id {cluster.users[0]}") == cluster.controller.output(f"id {cluster.users[0]}")


RECORD = "/var/lib/isthmus/slurm/hardware.json"


@pytest.fixture
def richer(added, controller):
    """A record in which the new node had twice its memory."""
    whole = json.loads(controller.output(f"cat {RECORD}"))
    had = {**whole[NEW], "memtotal_mb": 2 * whole[NEW]["memtotal_mb"]}
    controller.output(f"cp -p {RECORD} {RECORD}.was; echo '{json.dumps({**whole, NEW: had})}' > {RECORD}")
    yield had["memtotal_mb"]
    controller.output(f"mv {RECORD}.was {RECORD}")
    playbooks.succeed("hardware_back", "-i", EXTRA, "--limit", controller.name, "playbooks/reconfigure.yml")


def test_node_that_is_away_keeps_its_line_and_one_that_lost_memory_is_named(richer, controller):
    playbooks.succeed("hardware_away", "-i", EXTRA, "--limit", controller.name, "playbooks/reconfigure.yml")
    memory = jobs.fields(controller.output(f"scontrol show node {NEW}"))["RealMemory"]
    assert int(memory) > richer * 0.9
    refused = playbooks.play("hardware_lost", "-i", EXTRA, "--limit", NEW, "playbooks/reconfigure.yml")
    assert refused.rc
    assert f"MiB of memory and had {richer}; repair it, or add it to slurm_hardware_accepted" in refused.output


def test_removing_waits_for_jobs_of_the_node(added, controller, login, user, job):
    with jobs.running(login, controller, user, f"--nodelist={NEW} --mem=10", "sleep 20") as leaving:
        arguments = ("-i", EXTRA, "-e", f"nodes={NEW}")
        removed = playbooks.succeed("remove_nodes", *arguments, "playbooks/remove_nodes.yml")
        assert jobs.state(controller, leaving) == "COMPLETED"
    assert set(removed.recap) <= {"localhost", controller.name, NEW}
    assert NEW not in jobs.node_states(controller)
    # Asked again, for what the playbook did.
    assert not json.loads(controller.output(f"isthmus network forget {NEW} --json"))["forgotten"]
    assert jobs.state(controller, job) == "RUNNING"


def test_drain_of_another_is_not_lifted(controller, computes):
    name = computes[-1].name
    controller.output(f"scontrol update NodeName={name} State=DRAIN Reason='disk fails'")
    playbooks.play("resume", "-e", f"nodes={name}", "-e", "drain_state=resume", "playbooks/drain.yml")
    assert "drain" in jobs.node_states(controller)[name]
    controller.output(f"scontrol update NodeName={name} State=RESUME")
    jobs.wait_for_nodes(controller, name)


def test_own_drain_is_owned_and_lifted(controller, computes):
    name = computes[-1].name
    playbooks.succeed("drain", "-e", f"nodes={name}", "-e", "drain_reason=new-disk", "playbooks/drain.yml")
    assert "Reason=isthmus: " in controller.output(f"scontrol show node {name}")
    playbooks.succeed("resume_own", "-e", f"nodes={name}", "-e", "drain_state=resume", "playbooks/drain.yml")
    jobs.wait_for_nodes(controller, name)
