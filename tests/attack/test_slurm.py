"""Slurm in another's name, against another's job, and by words that a root process reads."""

from __future__ import annotations

import json
import time

import pytest

from tests.support.attacks.commands import tried
from tests.support.clusters import jobs
from tests.support.wait import wait

# slurm_user_jobs_max of the test bed.
JOBS_MAX = 1000
MARK = "secret-of-the-victim"
LIBRARY = r"""
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
    FILE *file = fopen(PLACE, "a");
    if (file) { fprintf(file, "%d\n", geteuid()); fclose(file); }
}
"""
# The task prints its uid.
WHO = "srun --mem=20 --immediate=15"
AS_ANOTHER = {
    "srun --uid": f"{WHO} --uid=VICTIM id",
    "srun --uid=0": f"{WHO} --uid=0 id",
    "srun --gid=0": f"{WHO} --gid=0 id",
    "sbatch --uid": "sbatch --uid=VICTIM --wait --output=/dev/null --wrap 'touch /tmp/isthmus-attack-as'",
    "sbatch --gid": "sbatch --gid=0 --wait --output=/dev/null --wrap 'touch /tmp/isthmus-attack-as'",
    "USER and LOGNAME": f"USER=root LOGNAME=VICTIM HOME=/root {WHO} id -un",
    "SLURM_JOB_UID": f"SLURM_JOB_UID=0 SLURM_JOB_USER=root {WHO} id",
}
NET = f"{WHO} --pod-network"
BY_WORDS = {
    "pattern": f"{NET}='%n%n%s' echo started",
    "shell": f"{NET}='$(touch /tmp/isthmus-attack-shell)' echo started",
    "newline": f"{NET}=$'private\\nnone' echo started",
    "500 bytes": f"{NET}={'x' * 500} echo started",
    "environment of the option": "SLURM_SPANK__SLURM_SPANK_OPTION_isthmus_pod_network=bridge "
    f"_SLURM_SPANK_OPTION_isthmus_pod_network='$(id)' {NET}=x echo started",
    "reservation ../": f"ISTHMUS_RESERVATION=../../../etc {NET} echo started",
    "reservation quotes": f"ISTHMUS_RESERVATION='\"}},{{\"' {NET} echo started",
    "reservation newline": f"ISTHMUS_RESERVATION=$'a\\nb' {NET} echo started",
    "reservation 3000 bytes": f"ISTHMUS_RESERVATION={'r' * 3000} {NET} echo started",
}
ANOTHERS_JOB = {
    "script": f"scontrol write batch_script JOB - | grep {MARK}",
    "update": "scontrol update JobId=JOB Comment=bob",
    "cancel": "scancel JOB; squeue --noheader --jobs=JOB --format=%T | grep -qv RUNNING",
    "requeue": "scontrol requeue JOB",
    "hold": "scontrol hold JOB",
    "step": "srun --jobid=JOB --overlap --immediate=10 id",
    "attach": "timeout 10 sattach JOB.0",
    "sstat": "sstat --noheader --jobs=JOB.batch | grep .",
    "sacct script": f"sacct --batch-script --jobs=JOB | grep {MARK}",
    "sacct environment": f"sacct --env-vars --jobs=JOB | grep {MARK}",
    "environment": f"scontrol show job --details JOB | grep {MARK}",
    "sbcast": "SLURM_JOB_ID=JOB sbcast --force /etc/hostname /tmp/isthmus-attack-sbcast",
    "notify": "scontrol notify JOB hello",
    "reconfigure": "scontrol reconfigure",
    "account": "sacctmgr --immediate add account isthmus-attack",
    "coordinator": "sacctmgr --immediate add coordinator accounts=root names=$USER",
    "administrator": "sacctmgr --immediate modify user $USER set adminlevel=Admin",
    "drain": "scontrol update NodeName=NODE State=DRAIN Reason=attack",
    "reservation": "scontrol create reservation StartTime=now Duration=1 Nodes=NODE Users=$USER",
    "token": "scontrol token username=VICTIM",
    "debug": "scontrol setdebug debug5",
}
# Each way has a library of its own, which writes down whose programs load it.
PRELOADS = {
    "LD_PRELOAD": f"LD_PRELOAD=LIBRARY {WHO} true",
    "SPANK_LD_PRELOAD": f"SPANK_LD_PRELOAD=LIBRARY {WHO} --pod-network true",
    "LD_AUDIT": f"LD_AUDIT=LIBRARY {WHO} true",
    "--export": f"{WHO} --export=ALL,LD_PRELOAD=LIBRARY,SPANK_LD_PRELOAD=LIBRARY true",
}


def filled(ways, **words):
    """Put names and numbers of this site into commands."""
    for word, value in words.items():
        ways = {name: command.replace(word, value) for name, command in ways.items()}
    return ways


@pytest.fixture(scope="module")
def victims_job(login, controller, victim):
    """A job of the victim's whose script and environment hold a secret."""
    command = f"export ATTACKED={MARK}; sleep 300 # {MARK}"
    job = login.run_as(
        victim, f"ATTACKED={MARK} sbatch --parsable --mem=20 --output=/dev/null --wrap {json.dumps(command)}"
    )
    try:
        jobs.wait_for_job(controller, job, "RUNNING")
        yield job
    finally:
        jobs.cancel(controller, job)


@pytest.fixture(scope="module")
def as_another(login, nodes, attacker, victim):
    yield tried(login, attacker, filled(AS_ANOTHER, VICTIM=victim))
    for node in nodes.values():
        node.output("rm -f /tmp/isthmus-attack-as /tmp/isthmus-attack-shell /tmp/isthmus-attack-sbcast")


@pytest.fixture(scope="module")
def by_words(login, attacker):
    return tried(login, attacker, BY_WORDS)


@pytest.fixture(scope="module")
def anothers(login, controller, attacker, victim, computes, victims_job):
    before = jobs.node_states(controller)
    found = tried(login, attacker, filled(ANOTHERS_JOB, JOB=victims_job, NODE=computes[0].name, VICTIM=victim))
    assert jobs.state(controller, victims_job) == "RUNNING"
    assert not {name for name, state in jobs.node_states(controller).items() if "drain" in state} - {
        name for name, state in before.items() if "drain" in state
    }
    return found


@pytest.fixture(scope="module")
def loaded(login, computes, attacker):
    """Way -> the users whose programs have loaded its library, on any node."""
    numbers = {name: str(number) for number, name in enumerate(PRELOADS)}
    places = [f"/tmp/isthmus-attack-loaded.{number}" for number in numbers.values()]
    # Everybody may write there, so that the process that loads it says so.
    for node in (login, *computes):
        node.output("; ".join(f"install -m 666 /dev/null {place}" for place in places))
    build = "; ".join(
        f"gcc -shared -fPIC -DPLACE='\"{place}\"' -x c -o .isthmus-attack.{number}.so .isthmus-attack.c"
        for number, place in enumerate(places)
    )
    try:
        login.run_as(attacker, f"cat > .isthmus-attack.c <<'END'\n{LIBRARY}\nEND\n{build}")
        ways = {
            name: PRELOADS[name].replace("LIBRARY", f"$HOME/.isthmus-attack.{numbers[name]}.so") for name in PRELOADS
        }
        outcomes = tried(login, attacker, ways)
        assert all(one.worked for one in outcomes.values()), outcomes
        said = [node.output(f"grep -H . {' '.join(places)} || true").split() for node in (login, *computes)]
    finally:
        login.run_as(attacker, "rm -f .isthmus-attack.*")
        for node in (login, *computes):
            node.output(f"rm -f {' '.join(places)}")
    return {name: {uid for lines in said for uid in users(lines, places[int(numbers[name])])} for name in PRELOADS}


def users(lines, place):
    """Return the user ids that `grep -H` found in a file."""
    return {line.removeprefix(f"{place}:") for line in lines if line.startswith(f"{place}:")}


@pytest.mark.attack("slurm")
@pytest.mark.parametrize("way", AS_ANOTHER)
def test_jobs_run_as_their_owner(as_another, victim, login, way):
    """A job or step that runs as another user."""
    found = as_another[way]
    assert "uid=0(" not in found.said
    assert f"({victim})" not in found.said
    assert found.said.strip() not in ("root", victim)
    assert login.run("test -e /tmp/isthmus-attack-as").rc != 0


@pytest.mark.attack("slurm")
@pytest.mark.parametrize("way", BY_WORDS)
def test_words_of_the_plugin_start_no_task(by_words, way):
    """Options and variables of the plugin: patterns, quotes, newlines, paths, much text."""
    assert by_words[way].rc
    assert "started" not in by_words[way].said.splitlines()


@pytest.mark.attack("slurm")
@pytest.mark.parametrize("way", ANOTHERS_JOB)
def test_job_of_another_is_out_of_reach(anothers, way):
    """Another's job: read, change, end, enter it; the cluster's settings and accounts."""
    assert not anothers[way].worked, anothers[way].said
    assert MARK not in anothers[way].said


@pytest.mark.attack("slurm")
@pytest.mark.parametrize("way", PRELOADS)
def test_library_is_loaded_by_its_user_alone(loaded, login, attacker, way):
    """A library of the user's in root's prolog or slurmstepd."""
    uid = login.output(f"id -u {attacker}")
    assert loaded[way] <= {uid}
    # The way is one at all: the attacker's own programs have loaded it.
    assert loaded[way] or way.startswith("SPANK")


@pytest.mark.attack("slurm")
def test_socket_of_munge_gives_nobody_another_name(login, attacker, victim):
    """A credential of munge in another's name."""
    made = tried(
        login,
        attacker,
        {
            "own": "munge --no-input | unmunge --metadata=- --output=/dev/null",
            "uid": f"munge --no-input --restrict-uid={victim} | unmunge",
        },
    )
    assert made["own"].worked
    assert f"({login.output(f'id -u {victim}')})" not in made["own"].said
    assert not made["uid"].worked
    wait(lambda: login.run_as(attacker, "squeue --me --noheader --name=wrap") == "")


@pytest.fixture
def managed(controller):
    """Only where Isthmus installed Slurm itself."""
    if not controller.variables["slurm_manage"]:
        pytest.skip("this Slurm is the site's own")


@pytest.mark.attack("-")
@pytest.mark.parametrize("way", ["one array", "array after array"])
def test_queue_of_slurm_is_filled(login, controller, attacker, victim, managed, way):
    """More jobs in the queue than a user may have, none of which runs."""
    held = "sbatch --hold --quiet --mem=10 --output=/dev/null --wrap true"
    # Fifty are left to other jobs of the attacker's, such as a Kubernetes.
    sizes = [JOBS_MAX + 1] if way == "one array" else [JOBS_MAX // 2, JOBS_MAX // 2 - 50, JOBS_MAX // 2]
    try:
        asked = [login.try_as(attacker, f"{held} --array=0-{size - 1}") for size in sizes]
        assert asked[-1].rc != 0
        assert "job submit limit" in asked[-1].stderr
        assert [each.rc for each in asked[:-1]] == [0] * (len(asked) - 1)
        login.run_as(victim, "srun --mem=10 true")
    finally:
        controller.output(f"scancel --user={attacker} --state=PENDING")


@pytest.mark.attack("-")
@pytest.mark.full
def test_slurmctld_is_asked_without_end(login, attacker, victim, managed):
    """More requests to slurmctld than a user has, by many programs at once, while another starts a job."""
    asking = "for n in $(seq 20); do (for m in $(seq 40); do squeue > /dev/null; done) & done; wait"
    begin = time.monotonic()
    login.output(f"su - {attacker} -c '{asking}' > /dev/null 2>&1 &")
    login.run_as(victim, "srun --mem=10 true")
    took_s = time.monotonic() - begin
    wait(lambda: login.run(f"pgrep --euid {attacker} squeue").rc != 0)
    # 800 requests, of which 200 come at once and 50 a second after them.
    assert time.monotonic() - begin > (800 - 200) / 50 * 0.8
    assert took_s < 30
