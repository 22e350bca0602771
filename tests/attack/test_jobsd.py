"""A user attacks the service that asks Slurm for all kubelets: another's jobs, another's credential, its places."""

from __future__ import annotations

import json
import shlex
import time

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT

PLACE = "/usr/local/lib/isthmus-test-jobsd-attacks.py"
ATTACK = f"python3 {PLACE}"
FLOOD = 400


@pytest.fixture(scope="module", autouse=True)
def places(login, two_computes):
    """The hosts with the attack program."""
    if not json.loads(login.output("cat /etc/isthmus/kubernetes.json")).get("jobs"):
        pytest.skip("the site has no isthmus-jobsd")
    source = (ROOT / "tests/support/attacks/jobsd.py").read_text()
    hosts = (login, *two_computes)
    for each in hosts:
        each.output(f"cat > {PLACE} <<'END'\n{source}\nEND")
    yield hosts
    for each in hosts:
        each.output(f"rm -f {PLACE}")


@pytest.fixture(scope="module")
def victims_job(login, controller, victim):
    """A job of the victim's, who knows of it: the honest way works."""
    with jobs.running(login, controller, victim, "--mem=50") as job:
        assert job in heard(login, victim)["jobs"]["rows"]
        yield job


def heard(node, user, words="hear"):
    reported = node.run_as(user, f"{ATTACK} {words}")
    return json.loads(reported) if reported.strip() else {"error": "nothing"}


@pytest.mark.attack("slurm")
@pytest.mark.parametrize("way", ["own", "of a user namespace", "victim's for another question", "own twice", "none"])
def test_jobs_of_another_by_jobsd(login, attacker, victim, victims_job, way):
    """Jobs of another by the service that asks Slurm for all kubelets."""
    if way == "own":
        assert victims_job not in heard(login, attacker)["jobs"]["rows"]
        return
    if way == "of a user namespace":
        inside = f"unshare --user --map-root-user --map-auto setpriv --reuid=1001 --clear-groups {ATTACK} hear"
        reported = login.try_as(attacker, inside).stdout
        assert not reported or "no account" in json.loads(reported)["error"]
        return
    words = {
        "victim's for another question": f"hear {shlex.quote(login.run_as(victim, 'munge --string=x'))}",
        "own twice": "replay",
        "none": "hear MUNGE:AwQFAAA:",
    }[way]
    assert set(heard(login, attacker, words)) == {"error"}


@pytest.mark.attack("slurm")
def test_flood_at_jobsd(login, two_computes, attacker, victim, victims_job):
    """Connections without end at the service that asks Slurm for all kubelets."""
    login.run_as(attacker, f"(sleep 20 | {ATTACK} flood {FLOOD}) >/dev/null 2>&1 &")
    late = []
    for _ in range(5):
        began_s = time.monotonic()
        assert victims_job in heard(two_computes[0], victim)["jobs"]["rows"]
        late.append(time.monotonic() - began_s)
        time.sleep(1)
    assert max(late) < 10
