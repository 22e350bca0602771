"""Three members of etcd go to the next minor release and back, as an admin brings them, while jobs run.

Another release of etcd is another Isthmus, so the next one is a copy of this tree. Back is this tree's own playbook.
"""

import json
import re
import shlex
import time
import uuid

import pytest
import yaml
from ClusterShell.NodeSet import NodeSet

from tests.repo.tree import ROOT
from tests.support.clusters import asking, etcd_members, other_tree, playbooks, upgrades
from tests.support.clusters.upgrades import UPGRADE, words

RELEASES = yaml.safe_load((ROOT / "artifacts.yml").read_text())["releases"]
NOW, NEXT = RELEASES["etcd"]["version"], RELEASES["etcd-after"]["version"]
ETCD_ONLY = ("-e", json.dumps({"upgrade_skip": ["slurm", "kubernetes"]}))
PREFIX = "/isthmus-test-upgrade/"
# A write that fails is tried again; each that etcd has acknowledged is a line.
WRITES = (
    "n=0; while :; do isthmus-etcdctl --command-timeout=2s put {prefix}$n $n >/dev/null 2>&1"
    " && echo $n $(date +%s.%N) && n=$((n + 1)); sleep 0.05; done"
)


def next_isthmus(folder):
    """Copy the tree, and have it want the next release of etcd, which is built; etcdctl stays."""
    locks = other_tree.copy(folder) / "build/go"
    (locks / "etcd").rename(locks / "etcdctl")
    (locks / "etcd-after").rename(locks / "etcd")
    known = yaml.safe_load((folder / "artifacts.yml").read_text())
    release = known["releases"].pop("etcd")
    del release["upstream"]
    programs = {name: {"package": program["package"]} for name, program in release["programs"].items()}
    known["releases"]["etcdctl"] = release | {"programs": {"etcdctl": programs.pop("etcdctl")}}
    known["releases"]["etcd"] = release | {"version": NEXT, "programs": programs}
    del known["releases"]["etcd-after"]
    (folder / "artifacts.yml").write_text(yaml.safe_dump(known, sort_keys=False))
    return folder


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """The next Isthmus."""
    return next_isthmus(tmp_path_factory.mktemp("next") / "tree")


@pytest.fixture(scope="module")
def members(cluster):
    """Hosts with a member of etcd."""
    return etcd_members.members(cluster)


class Writes:
    """What a client of all members has written, from the first moment to the last."""

    def __init__(self, members):
        self._node, self._unit = members[0], f"isthmus-test-etcd-{uuid.uuid4().hex[:8]}"
        endpoints = ",".join(f"https://{each.variables['base_address']}:2379" for each in members)
        loop = WRITES.format(prefix=PREFIX)
        self._node.output(
            f"systemd-run --quiet --collect --unit {self._unit} --setenv ETCDCTL_ENDPOINTS={endpoints}"
            f" sh -c {shlex.quote(loop)}"
        )

    def times(self):
        """Return when each number was acknowledged."""
        shown = self._node.output(f"journalctl --unit {self._unit} --output cat --no-pager").splitlines()
        return [float(line.split()[1]) for line in shown if line[:1].isdigit()]

    def longest_gap_s(self):
        """Return the longest time without an acknowledged write."""
        return asking.gaps_between(self.times())["longest_gap_s"]

    def assert_there(self):
        """Fail where etcd does not have what it has acknowledged."""
        count = len(self.times())
        assert count > 0
        shown = self._node.output(f"isthmus-etcdctl get --prefix {PREFIX} --count-only --write-out=fields")
        assert int(re.search(r'"Count" : (\d+)', shown)[1]) >= count

    def end(self):
        """Stop, and remove what was written."""
        self._node.run(f"systemctl stop {self._unit}")
        self._node.output(f"isthmus-etcdctl del --prefix {PREFIX}")


@pytest.fixture(scope="module")
def writes(members):
    """A client that writes throughout."""
    found = Writes(members)
    yield found
    found.end()


def etcd_versions(members):
    """Return host -> the release that its member runs."""
    return {node.name: etcd_members.status(node)["version"] for node in members}


def processes(members):
    return [node.output("systemctl show --property=MainPID isthmus-etcd") for node in members]


def timed(log, tree):
    begun = time.monotonic()
    done = playbooks.play(log, UPGRADE, *ETCD_ONLY, tree=tree)
    assert done.rc == 0, f"see results/logs/{log}.log"
    return done, round(time.monotonic() - begun, 1)


def test_plan_names_each_member_and_changes_nothing(members, newer, load):
    before = processes(members)
    planned = playbooks.play("etcd_check", UPGRADE, *ETCD_ONLY, "--check", tree=newer)
    assert planned.rc == 0
    hosts = NodeSet.fromlist([node.name for node in members])
    assert f"etcd {hosts} {NOW} {NEXT}" in words(planned.output)
    assert not planned.changed
    assert processes(members) == before


def test_upgrade_is_refused_while_a_member_is_away(members, newer, load):
    away, *others = members
    before = processes(others)
    away.output("systemctl stop isthmus-etcd")
    try:
        refused = playbooks.play("etcd_away", UPGRADE, *ETCD_ONLY, tree=newer)
    finally:
        away.output("systemctl start isthmus-etcd")
    assert refused.rc != 0
    assert f"etcd on {away.name} does not answer, so no further member may stop" in words(refused.output)
    assert processes(others) == before


def test_members_change_while_clients_write_and_jobs_run(members, newer, writes, load):
    done, took_s = timed("etcd_next", newer)
    assert {node.name for node in members} <= done.changed
    assert set(etcd_versions(members).values()) == {NEXT}
    load.assert_alive()
    writes.assert_there()
    upgrades.record(round="etcd", to=NEXT, upgrade_s=took_s, longest_gap_s=round(writes.longest_gap_s(), 2))
    assert not timed("etcd_again", newer)[0].changed


def test_way_back_that_is_killed_after_a_member_goes_on(members, writes, load):
    playbooks.cut("Wait until all members are one cluster, this one in its new version", UPGRADE, *ETCD_ONLY)
    assert set(etcd_versions(members).values()) == {NOW, NEXT}
    _, took_s = timed("etcd_back", ROOT)
    assert set(etcd_versions(members).values()) == {NOW}
    load.assert_alive()
    writes.assert_there()
    upgrades.record(round="etcd", to=NOW, upgrade_s=took_s, longest_gap_s=round(writes.longest_gap_s(), 2))
    assert not timed("etcd_back_again", ROOT)[0].changed
