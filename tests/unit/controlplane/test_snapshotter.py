"""When snapshots are taken, when not, and what is notified of them."""

import asyncio
import json

import pytest

from isthmus.clients.etcd.gateway import UnavailableError
from isthmus.clients.etcd.snapshot import Mark
from isthmus.controlplane.data import claims, data_report, snapshots
from isthmus.controlplane.data.snapshotter import DataReport, Saver, SupersededError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.settings import DataLocation


class FakeEtcd:
    """Content, revision, and whether it answers."""

    def __init__(self):
        self.content, self.number, self.silent = 1, 10, False

    def mark(self, bounds):
        if self.silent:
            raise UnavailableError("etcd is away")
        return Mark(((1, self.content),))

    def revision(self):
        return self.number

    def save(self, file):
        return file.write(b"all")

    def close(self):
        pass

    def change(self):
        self.content += 1
        self.number += 1


@pytest.fixture
def etcd():
    return FakeEtcd()


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path)


@pytest.fixture
def saver(layout, etcd):
    claim = claims.next_claim(None, [], DataLocation.NODE, "c1", "")
    claims.write(layout, claim)
    return Saver(layout, claim, lambda: etcd, DataReport("7", "c1", "/disk", "nothing", ("it was dark",), every_s=0))


def files(layout):
    return sorted(each.revision for each in snapshots.listed(layout.snapshots))


def reported(layout):
    return data_report.read(layout, "7")


def test_snapshot_follows_a_change_alone(saver, layout, etcd):
    assert saver.save()
    # A lease: the revision goes on, and nothing that matters changed.
    etcd.number += 1
    assert not saver.save()
    etcd.change()
    assert saver.save()
    assert files(layout) == [10, 12]


def test_last_one_is_taken_in_any_case_and_says_so(saver, layout):
    saver.save()
    asyncio.run(saver.last())
    assert max(snapshots.listed(layout.snapshots)).is_final


def test_few_are_kept_and_the_homes_old_data_go(saver, layout, etcd):
    layout.etcd.mkdir()
    for _ in range(snapshots.KEPT + 3):
        saver.save()
        etcd.change()
    assert files(layout) == [13, 14, 15, 16, 17]
    assert not layout.etcd.exists()


def test_superseded_one_publishes_nothing_and_ends(saver, layout, etcd):
    claims.write(layout, claims.next_claim(saver.claim, [], DataLocation.NODE, "c2", ""))
    ended = []
    asyncio.run(saver.run(lambda: ended.append(True)))
    assert ended == [True]
    with pytest.raises(SupersededError, match="went on with the cluster on c2; this one ends"):
        saver.save(is_final=True)
    assert files(layout) == []


def test_superseded_is_noticed_while_nothing_changes(saver, layout):
    saver.save()
    claims.write(layout, claims.next_claim(saver.claim, [], DataLocation.NODE, "c2", ""))
    with pytest.raises(SupersededError):
        saver.save()


def test_superseded_while_it_writes_publishes_nothing(saver, layout, etcd, monkeypatch):
    def save(file):
        claims.write(layout, claims.next_claim(saver.claim, [], DataLocation.NODE, "c2", ""))
        return file.write(b"all")

    monkeypatch.setattr(etcd, "save", save)
    with pytest.raises(SupersededError):
        saver.save()
    assert list(layout.snapshots.iterdir()) == []


def test_problem_is_reported_until_a_snapshot_is_taken(saver, layout, etcd):
    problem = "no newer snapshot: etcd is away"

    async def some_time():
        task = asyncio.create_task(saver.run(lambda: None))
        while problem not in reported(layout).warnings:
            await asyncio.sleep(0)
        etcd.silent = False
        while problem in reported(layout).warnings:
            await asyncio.sleep(0)
        task.cancel()

    saver.save()
    etcd.silent = True
    asyncio.run(asyncio.wait_for(some_time(), 20))
    assert reported(layout).warnings == ["it was dark"]


def test_last_one_that_cannot_be_taken_is_reported_and_does_not_hang(saver, layout, etcd):
    saver.last_s = saver.retry_s = 0
    etcd.silent = True
    asyncio.run(saver.last())
    assert reported(layout).warnings[1] == "no newer snapshot: the last snapshot could not be taken: etcd is away"


def test_cluster_that_is_purged_is_not_saved(saver, layout):
    layout.purge.touch()
    asyncio.run(saver.last())
    assert files(layout) == []


def test_words_report_node_age_and_risk(saver, layout):
    saver.report.every_s = 30
    saver.report.write(layout)
    assert "data on the disk of c1" in reported(layout).words
    assert "none was taken yet; when the node dies, what is newer is lost" in reported(layout).words
    saver.save()
    assert "the last one is of 2" in reported(layout).words
    assert data_report.read(layout, "8") is None
    saver.report.every_s = 0
    saver.report.write(layout)
    assert (reported(layout).words, reported(layout).warnings) == ("", ["it was dark"])
    assert json.loads(layout.data.read_text())["schema"] == 1
