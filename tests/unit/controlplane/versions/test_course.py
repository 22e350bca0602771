"""A start's way: what is recorded when, and what a failure or a death at any moment leaves."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from isthmus.controlplane.data.claims import Source
from isthmus.controlplane.data.restorer import Restored
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.versions import copies, record
from isthmus.controlplane.versions.course import TRIES, Course, Request, recover
from isthmus.controlplane.versions.plan import Image, RefusedError, Versions
from isthmus.controlplane.versions.record import Record

OLD, NEW, LATER = (Versions(version, "3.6.14") for version in ("1.36.3", "1.37.2", "1.38.0"))
IMAGES = {each: Image(Path(f"/share/{each.kubernetes}"), each.kubernetes, each.etcd) for each in (OLD, NEW, LATER)}


class Site:
    """A cluster's folder, and images that write their version to the data; some fail."""

    def __init__(self, folder):
        self.layout = Layout(folder)
        self.layout.etcd.mkdir(parents=True)
        self.failing, self.stopped, self.killed, self.ran = set(), set(), set(), []
        self.source = Source.HOME

    @property
    def data(self):
        """The version that wrote last."""
        return (self.layout.etcd / "member/db").read_text()

    def fill(self, versions, known=True):
        (self.layout.etcd / "member").mkdir(exist_ok=True)
        (self.layout.etcd / "member/db").write_text(versions.kubernetes)
        if known:
            record.write(self.layout, Record(versions, "1.0"))

    def start(self, *there, run="2.0", request=None):
        recover(self.layout, [self.layout.etcd])
        restored, images = Restored(self.layout.etcd, self.source), [IMAGES[each] for each in there]
        asyncio.run(
            Course(self.layout, run, images, request or Request(), restored, [self.layout.etcd], self.serve).go()
        )

    async def serve(self, image, trial):
        self.ran.append(image.kubernetes)
        assert record.read(self.layout).newest == image.versions
        self.fill(image.versions, known=False)
        if image.versions in self.killed:
            raise KeyboardInterrupt
        if image.versions in self.stopped:
            return False
        if trial and image.versions in self.failing:
            trial.failed = "kube-apiserver ended with status 1: no"
        elif trial:
            trial.record()
            trial.over.set()
        return True

    @property
    def known(self):
        return record.read(self.layout)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "cluster")


def test_new_cluster_begins_with_the_newest(site):
    site.start(OLD, LATER)
    assert (site.ran, site.known) == (["1.38.0"], Record(LATER, "2.0"))


def test_start_by_the_same_version_copies_nothing(site, monkeypatch):
    site.fill(OLD)
    monkeypatch.setattr(copies, "make", None)
    site.start(OLD)
    assert (site.ran, site.known) == (["1.36.3"], Record(OLD, "2.0"))


def test_data_of_before_there_were_records_move(site):
    site.fill(OLD, known=False)
    site.start(OLD, NEW)
    assert (site.ran, site.known) == (["1.37.2"], Record(NEW, "2.0"))
    assert not copies.exists(site.layout.etcd)


def test_late_user_goes_through_each_release(site):
    site.fill(OLD)
    site.start(OLD, NEW, LATER)
    assert (site.ran, site.known, site.data) == (["1.37.2", "1.38.0"], Record(LATER, "2.0"), "1.38.0")


@pytest.mark.parametrize("failing", [NEW, LATER])
def test_failure_goes_back_to_the_copy_and_is_reported(site, failing):
    site.fill(OLD)
    site.failing = {failing}
    site.start(OLD, NEW, LATER)
    assert (site.ran[-1], site.data, site.known.versions, site.known.move) == ("1.36.3", "1.36.3", OLD, None)
    assert (site.known.failure.kubernetes, site.known.failure.why) == (
        failing.kubernetes,
        "kube-apiserver ended with status 1: no",
    )
    assert not copies.exists(site.layout.etcd)
    # The next start does not try it again; one that asks for it does.
    site.ran, site.failing = [], set()
    site.start(OLD, *({NEW, LATER} & {failing}), run="3.0")
    assert site.ran == ["1.36.3"]
    if failing is NEW:
        site.start(OLD, NEW, run="4.0", request=Request("1.37", site.known.failure.time))
        assert site.known == Record(NEW, "4.0")


def test_way_back_without_the_old_image_is_refused_with_the_data_back(site):
    site.fill(OLD)
    site.failing = {NEW}
    with pytest.raises(
        ControlPlaneError, match=r"1.37.2 could not be started \(kube-apiserver .* 1.36.3, which ran bef"
    ):
        site.start(NEW)
    assert (site.data, site.known.versions, site.known.move) == ("1.36.3", OLD, None)


def test_failure_that_matters_no_more_is_forgotten(site):
    site.fill(OLD)
    site.failing = {NEW}
    site.start(OLD, NEW)
    site.start(OLD, NEW, run="3.0", request=Request("1.36"))
    assert site.known == Record(OLD, "3.0")


def test_job_that_is_ended_meanwhile_goes_on_at_its_next_start(site):
    site.fill(OLD)
    site.stopped = {NEW}
    site.start(OLD, NEW, LATER)
    assert (site.ran, site.known.move.reached, site.known.move.to) == (["1.37.2"], NEW, LATER)
    assert copies.exists(site.layout.etcd)
    site.stopped = set()
    site.start(OLD, NEW, LATER, run="3.0")
    assert (site.ran, site.known) == (["1.37.2", "1.38.0"], Record(LATER, "3.0"))


def test_version_that_kills_its_job_is_tried_three_times(site):
    site.fill(OLD)
    site.killed = {NEW}
    for number in range(TRIES):
        with pytest.raises(KeyboardInterrupt):
            site.start(OLD, NEW, run=f"2.{number}")
    site.start(OLD, NEW, run="2.9")
    assert (site.ran, site.data) == (["1.37.2"] * TRIES + ["1.36.3"], "1.36.3")
    assert (site.known.failure.kubernetes, site.known.failure.file) == ("1.37.2", "1.37.2")
    assert "not ready in 3 starts" in site.known.failure.why


@pytest.mark.parametrize("step", range(8))
def test_death_on_the_way_back_loses_nothing(site, monkeypatch, step):
    site.fill(OLD)
    site.failing = {NEW}
    calls = []

    def dying(real, *arguments):
        if site.ran and (calls.append(real) or len(calls) > step):
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(record, "write", partial(dying, record.write))
        patched.setattr(copies.durable, "move", partial(dying, copies.durable.move))
        try:
            site.start(OLD, NEW)
        except KeyboardInterrupt:
            assert len(calls) == step + 1
    site.start(OLD, NEW, run="3.0")
    assert (site.ran[-1], site.data, site.known.versions) == ("1.36.3", "1.36.3", OLD)
    assert site.known.failure.kubernetes == "1.37.2"
    assert {path.name for path in site.layout.folder.iterdir()} == {"etcd", "versions.json"}


def test_data_that_cannot_be_copied_stay_where_they_are(site, monkeypatch):
    def full(data):
        raise OSError(28, "No space left on device")

    site.fill(OLD)
    with monkeypatch.context() as patched:
        patched.setattr(copies, "make", full)
        site.start(OLD, NEW)
    assert (site.ran, site.known.versions) == (["1.36.3"], OLD)
    assert "could not be copied: [Errno 28] No space left on device; make room there" in site.known.failure.why
    # There is room again.
    site.start(OLD, NEW, run="3.0")
    assert site.known == Record(NEW, "3.0")


def test_killed_control_plane_keeps_its_version_in_the_same_job(site):
    site.fill(OLD)
    site.start(OLD, run="2.0")
    site.start(OLD, NEW, run="2.0")
    assert site.ran == ["1.36.3", "1.36.3"]
    site.start(OLD, NEW, run="2.1")
    assert site.ran[-1] == "1.37.2"


def test_snapshot_from_before_a_move_begins_it_again(site):
    site.fill(OLD)
    site.stopped = {NEW}
    site.start(OLD, NEW)
    # The node with the copy is gone.
    copies.remove(site.layout.etcd)
    site.fill(OLD, known=False)
    site.source, site.stopped = Source.SNAPSHOT, set()
    site.failing = {NEW}
    site.start(OLD, NEW, run="3.0")
    assert (site.data, site.known.versions) == ("1.36.3", OLD)


def test_data_that_went_elsewhere_during_a_move_are_of_what_reached_them(site):
    site.fill(OLD)
    site.stopped = {NEW}
    site.start(OLD, NEW)
    copies.remove(site.layout.etcd)
    with pytest.raises(RefusedError, match=r"1.37.2 ran your data last, and 1.36.3 cannot read them"):
        site.start(OLD, run="3.0")


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 2}', '{"schema": 1, "versions": 3}', "[1]"])
def test_record_that_cannot_be_read_is_an_error_with_a_remedy(site, text):
    site.layout.versions.write_text(text)
    with pytest.raises(ControlPlaneError, match=r"versions.json cannot be read .*; remove it, and your data count as"):
        record.read(site.layout)
