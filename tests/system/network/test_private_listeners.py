"""What users leave listening on localhost, in a login pod or in a job, is theirs alone: a notebook, a debugger.

And a coupled run: a database, a simulation and a notebook are three jobs that find one another by name.
"""

from contextlib import ExitStack

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT
from tests.support.clusters.sessions import inside, session, ssh
from tests.support.wait import wait
from tests.system.network.conftest import pods

# Where each listens, and how it is asked.
SERVERS = {"database": "127.0.0.1:5432", "debugger": "127.0.0.1:2345"}
ASKED = {"database": "http://127.0.0.1:5432", "debugger": "127.0.0.1:2345"}
ANSWERS = {"database": "[]", "debugger": "+$OK#9a"}
PLACE = "/usr/local/lib/isthmus-test-workflow.py"
PROGRAM = f"python3 {PLACE}"


@pytest.fixture(scope="module", autouse=True)
def program(nodes):
    source = (ROOT / "tests/support/remote/workflow.py").read_text()
    for node in nodes.values():
        node.output(f"cat > {PLACE} <<'END'\n{source}\nEND")
    yield
    for node in nodes.values():
        node.output(f"rm -f {PLACE}")


@pytest.fixture(scope="module")
def node(computes):
    return computes[0]


@pytest.fixture(scope="module")
def listening(login, controller, user, node):
    """A job of the first user's in which all of them listen."""
    servers = " ".join(f"{PROGRAM} {word} {where} &" for word, where in SERVERS.items())
    with jobs.running(
        login, controller, user, f"--pod-network --mem=100 --nodelist={node.name}", f"{servers} wait"
    ) as job:
        yield next(iter(pods(login, user, job, [node.name]).values()))


@pytest.mark.parametrize("word", [*SERVERS])
def test_listener_in_a_job_is_its_users_alone(login, controller, user, other_user, node, listening, word):
    ask = f"{PROGRAM} ask {ASKED[word]}"
    assert wait(lambda: listening.try_run(ask).stdout.strip()) == ANSWERS[word]
    from_outside = f"{PROGRAM} ask {ASKED[word].replace('127.0.0.1', listening.address)}"
    for options in ("--pod-network", ""):
        with jobs.running(login, controller, other_user, f"{options} --mem=50 --nodelist={node.name}") as job:
            step = f"srun --overlap --jobid={job} --mem=20"
            for command in (ask, from_outside):
                assert login.try_as(other_user, f"{step} {command}").rc != 0
            assert ssh(login, other_user, ask, node=node.name).rc != 0
    assert node.run(ask).rc != 0


@pytest.mark.parametrize("word", [*SERVERS])
def test_listener_in_a_login_pod_is_its_users_alone(login, controller, user, other_user, node, word):
    if login.run("grep -q 'pam_isthmus.so login' /etc/pam.d/sshd").rc:
        pytest.skip("the site has no login pods")
    ask = f"{PROGRAM} ask {ASKED[word]}"
    with session(login, user, f"{PROGRAM} {word} {SERVERS[word]}"):
        assert wait(lambda: ssh(login, user, ask).stdout.strip()) == ANSWERS[word]
        address = inside(login, user, "hostname -I").split()[0]
        from_outside = f"{PROGRAM} ask {ASKED[word].replace('127.0.0.1', address)}"
        for command in (ask, from_outside):
            assert ssh(login, other_user, command).rc != 0
            assert login.try_as(other_user, command).rc != 0
        with jobs.running(login, controller, other_user, f"--pod-network --mem=50 --nodelist={node.name}") as job:
            step = f"srun --overlap --jobid={job} --mem=20"
            assert login.try_as(other_user, f"{step} {from_outside}").rc != 0
        assert login.run(ask).rc != 0


def test_three_jobs_of_a_coupled_run_find_one_another_by_name(login, controller, user, other_user, two_computes):
    """The simulation begins first: a name may come later than who asks for it."""
    parts = {
        "simulation": (two_computes[1], f"{PROGRAM} simulation; sleep 300"),
        "notebook": (two_computes[0], f"{PROGRAM} notebook 0.0.0.0:8888"),
        "database": (two_computes[0], f"{PROGRAM} database 0.0.0.0:5432"),
    }
    with ExitStack() as stack:
        started = {}
        for word, (where, command) in parts.items():
            options = f"--pod-network --mem=50 --nodelist={where.name} --job-name={word}"
            started[word] = stack.enter_context(jobs.running(login, controller, user, options, command))
        wait(lambda: "simulated" in jobs.written(login, user, started["simulation"]), timeout_s=120)
        (pod,) = pods(login, user, started["simulation"], [two_computes[1].name]).values()
        ask = f"{PROGRAM} ask http://notebook:8888"
        assert wait(lambda: pod.try_run(ask).stdout.strip()) == "10 points, 285"
        if login.run("grep -q 'pam_isthmus.so login' /etc/pam.d/sshd").rc == 0:
            assert inside(login, user, ask) == "10 points, 285"
        (notebook,) = pods(login, user, started["notebook"], [two_computes[0].name]).values()
        options = f"--pod-network --mem=50 --nodelist={two_computes[1].name}"
        with jobs.running(login, controller, other_user, options) as job:
            (theirs,) = pods(login, other_user, job, [two_computes[1].name]).values()
            assert theirs.try_run(ask).rc != 0
            assert theirs.try_run(ask.replace("notebook", f"notebook.{user}")).rc != 0
            assert theirs.try_run(ask.replace("notebook", notebook.address)).rc != 0
