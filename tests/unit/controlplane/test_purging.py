"""What `isthmus down --purge` does about data on a node's disk, which it may not reach."""

import dataclasses

import pytest

from isthmus.controlplane.commands import down as ending
from isthmus.controlplane.data import lineage, nodedisk, placing
from isthmus.controlplane.layout import JOB_NAME, RESERVATION
from isthmus.controlplane.settings import DataPlace


@pytest.fixture(autouse=True)
def reserved(place):
    place.network.reserve(RESERVATION)


def claim(place, node):
    place.home.cluster.folder.mkdir(parents=True, exist_ok=True)
    lineage.write(place.home.cluster, lineage.Claim("id", 1, DataPlace.NODE, node))


@pytest.mark.parametrize(("removed_there", "left"), [(True, ""), (False, "c9")])
def test_purge_tells_the_control_plane_and_names_the_disk_that_has_data(place, slurm, monkeypatch, removed_there, left):
    claim(place, "c9")
    real = slurm.cancel

    def cancel(jobs, *, in_order=False):
        if in_order and jobs:
            assert place.home.cluster.purge.exists()
        if in_order and jobs and removed_there:
            place.home.cluster.purge.unlink()
        real(jobs, in_order=in_order)

    monkeypatch.setattr("isthmus.clients.slurm.own_jobs.cancel", cancel)
    slurm.add(JOB_NAME)
    assert ending.down(place, lambda _: None, purge=True).left == left
    assert not place.home.cluster.folder.exists()


def test_purge_on_the_node_itself_removes_its_data(place, slurm, tmp_path):
    here = dataclasses.replace(place, settings=dataclasses.replace(place.settings, data_dir=tmp_path))
    claim(place, placing.node())
    disk = nodedisk.of(place.home.cluster, tmp_path)
    ended = ending.down(here, lambda _: None, purge=True)
    assert str(disk.folder) in ended.removed
    assert (disk.folder.exists(), ended.left) == (False, "")


def test_down_without_purge_says_nothing_of_it(place, slurm):
    claim(place, "c9")
    assert ending.down(place, lambda _: None).left == ""
    assert not place.home.cluster.purge.exists()
