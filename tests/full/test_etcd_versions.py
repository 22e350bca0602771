"""A live etcd of three members goes on from 3.5 to 3.6 and 3.7 and back to 3.6, while clients write, read and watch.

Members change one by one, and the role's own module waits in between, as in an upgrade. The programs are built, which
takes some minutes; afterwards they are in the cache.
"""

import json
import os
import subprocess
import time

import pytest
import yaml

from isthmus.clients.etcd.store import Etcd
from tests.bench import results
from tests.repo.tree import ROOT
from tests.support import ansible_modules
from tests.support.servers import etcd as servers
from tests.support.servers.etcd_load import Load
from tests.support.wait import wait

RELEASES = yaml.safe_load((ROOT / "artifacts.yml").read_text())["releases"]
BEFORE, NOW, AFTER = "etcd-before", "etcd", "etcd-after"
MOST_S = 5
# As deployed.
SYNCS = "--unsafe-no-fsync=false"
ETCDCTL = """\
#!/bin/sh
export ETCDCTL_CACERT={tls}/ca.crt ETCDCTL_CERT={tls}/client.crt ETCDCTL_KEY={tls}/client.key
export ETCDCTL_USER=root ETCDCTL_PASSWORD={password}
exec {program} "$@"
"""
cluster_module = ansible_modules.load("roles/etcd/library/etcd_cluster.py")


def version(program):
    return RELEASES[program]["version"]


def etcdctl(folder):
    """Return the command that the role puts on a member."""
    script = folder / "isthmus-etcdctl"
    password = servers.PASSWORDS["root"]
    script.write_text(ETCDCTL.format(tls=folder / "tls", password=password, program=servers.program("etcdctl")))
    script.chmod(0o755)
    return str(script)


class Site:
    """Three members, and what the upgrade does with them."""

    def __init__(self, cluster):
        self.cluster, self.command = cluster, etcdctl(cluster.folder)
        self.figures = {}

    def ask(self, program, phase, name="", **rest):
        """Run the role's module."""
        members = {member.name: member.endpoint for member in self.cluster.members}
        given = {"members": members, "version": version(program), "phase": phase, "name": name}
        result = ansible_modules.run(cluster_module, **given, etcdctl=[self.command], **rest)
        return {key: value for key, value in result.items() if key in ("changed", "done", "msg")}

    def move(self, member, program):
        """Restart a member with another program, and wait as the upgrade does."""
        member.stop()
        member.program = program
        member.start(self.cluster.known, SYNCS)
        assert self.ask(program, "between", member.name) == {"changed": False, "done": []}

    def etcdctl(self, *words):
        """Run etcdctl; it must succeed."""
        asked = {"ETCDCTL_ENDPOINTS": ",".join(member.endpoint for member in self.cluster.members)}
        done = subprocess.run(
            [self.command, *words], env=os.environ | asked, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def storages(self):
        """Return the releases that what members store is of."""
        statuses = json.loads(self.etcdctl("endpoint", "status", "--cluster", "--write-out=json"))
        return {row["Status"]["storageVersion"] for row in statuses}

    def take_raft_snapshots(self):
        """Have all members take a Raft snapshot, as docs/admins/upgrades.md says."""
        wait(self.storages, {"3.6.0"}.__eq__)
        self.etcdctl("downgrade", "enable", "3.5")
        wait(self.storages, {"3.5.0"}.__eq__)
        self.etcdctl("downgrade", "cancel")
        wait(self.storages, {"3.6.0"}.__eq__)

    def upgrade(self, program, load):
        """Bring all members to a program; keep the longest gaps of the clients."""
        before, began, written = self.cluster.members[0].program, time.monotonic(), len(load.acknowledged)
        done = self.ask(program, "before")
        assert "msg" not in done, done
        for member in self.cluster.members:
            self.move(member, program)
        assert self.ask(program, "after") == {"changed": False, "done": []}
        gaps = {kind: round(load.longest_gap_s(kind, began), 3) for kind in load.beats}
        took = {"took_s": round(time.monotonic() - began, 1), "writes": len(load.acknowledged) - written}
        self.figures[f"{version(before)} to {version(program)}"] = {
            f"{kind}_gap_s": gap for kind, gap in gaps.items()
        } | took
        assert max(gaps.values()) <= MOST_S
        return done


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Three members of the oldest version, with users."""
    # Not while a member is away.
    for name in (BEFORE, NOW, AFTER, "etcdctl"):
        servers.program(name)
    cluster = servers.new_cluster(tmp_path_factory.mktemp("etcd"), 3)
    for member in cluster.members:
        member.program = BEFORE
    try:
        cluster.start(SYNCS)
        cluster.enable_auth()
        made = Site(cluster)
        yield made
        results.save("etcd_versions", moves=made.figures)
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def load(site):
    made = Load(site.cluster.access(), servers.PREFIX)
    yield made
    made.close()


def test_newer_releases_come_member_by_member(site, load):
    assert site.upgrade(NOW, load) == {"changed": False, "done": []}
    site.take_raft_snapshots()
    assert site.upgrade(AFTER, load) == {"changed": False, "done": []}


def test_older_member_does_not_start_before_etcd_may_go_back(site, load):
    member = site.cluster.members[0]
    member.stop()
    member.program = NOW
    member.start(site.cluster.known, SYNCS)
    assert member.process.wait(60) != 0
    assert 'version \\"3.7.0\\" is not supported' in site.cluster.log(member)[-2000:]
    assert site.ask(NOW, "before", timeout_s=0)["msg"].startswith(
        f"etcd before its upgrade: {member.name} does not answer"
    )
    site.move(member, AFTER)


def test_check_run_of_the_way_back_changes_nothing(site, load):
    would = site.ask(NOW, "before", _ansible_check_mode=True)
    assert would == {"changed": True, "done": ["enable", "3.6"]} == site.ask(NOW, "before", _ansible_check_mode=True)


def test_way_back_that_is_cut_can_be_left_again(site, load):
    first = site.cluster.members[0]
    assert site.ask(NOW, "before")["done"] == ["enable", "3.6"]
    assert site.ask(NOW, "before")["done"] == []
    site.move(first, NOW)
    # Another run of either way.
    assert site.ask(NOW, "before")["done"] == []
    assert site.ask(AFTER, "before")["done"] == ["cancel"]
    site.move(first, AFTER)
    assert site.ask(AFTER, "after") == {"changed": False, "done": []}


def test_older_release_comes_back_member_by_member(site, load):
    assert site.upgrade(NOW, load) == {"changed": True, "done": ["enable", "3.6"]}


def test_nothing_is_lost(site, load):
    load.stop()
    found = Etcd(site.cluster.access()).range(servers.PREFIX).entries
    wanted = {load.key(number): str(number) for number in load.acknowledged}
    assert len(wanted) > 1000
    assert {key: found[key].value for key in wanted if key in found} == wanted
    assert load.wrong == []
    wait(lambda: wanted.keys() - load.seen, lambda missing: not missing, timeout_s=30)


@pytest.fixture
def lone(tmp_path, request):
    """A site of one member that began with a program."""
    cluster = servers.new_cluster(tmp_path)
    cluster.members[0].program = request.param
    try:
        cluster.start()
        cluster.enable_auth()
        yield Site(cluster)
    finally:
        cluster.stop()


def restarted(site, program):
    """Restart a lone member; return why it does not serve, "" where it does."""
    member = site.cluster.members[0]
    member.stop()
    member.program = program
    member.start(site.cluster.known)
    wait(lambda: (member.process.poll(), site.cluster.is_healthy(member)), any, timeout_s=60)
    if member.process.poll() is None:
        return ""
    return site.cluster.log(member)[-4000:]


@pytest.mark.parametrize("lone", [BEFORE], indirect=True)
def test_log_of_3_5_is_in_the_way_of_3_7_until_a_snapshot(lone):
    assert restarted(lone, NOW) == ""
    Etcd(lone.cluster.access()).put(f"{servers.PREFIX}a", "1")
    assert "unmarshal should never fail" in restarted(lone, AFTER)
    assert restarted(lone, NOW) == ""
    lone.take_raft_snapshots()
    assert restarted(lone, AFTER) == ""
    assert Etcd(lone.cluster.access()).get(f"{servers.PREFIX}a").value == "1"


@pytest.mark.parametrize("lone", [NOW], indirect=True)
def test_log_of_a_site_is_not_in_the_way(lone):
    assert restarted(lone, AFTER) == ""
