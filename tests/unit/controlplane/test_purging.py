"""What `isthmus down --purge` does about data on a node's disk, which it may not reach."""

import dataclasses

import pytest

from isthmus.controlplane.commands import down as ending
from isthmus.controlplane.data import claims, location, node_disk
from isthmus.controlplane.layout import JOB_NAME, RESERVATION
from isthmus.controlplane.settings import DataLocation


@pytest.fixture(autouse=True)
def reserved(context):
    context.network.reserve(RESERVATION)


def claim(context, node):
    context.home.cluster.folder.mkdir(parents=True, exist_ok=True)
    claims.write(context.home.cluster, claims.Claim("id", 1, DataLocation.NODE, node))


@pytest.mark.parametrize(("removed_there", "left"), [(True, ""), (False, "c9")])
def test_purge_reports_the_control_plane_and_names_the_disk_that_has_data(
    context, slurm, monkeypatch, removed_there, left
):
    claim(context, "c9")
    real = slurm.cancel

    def cancel(jobs, *, in_order=False):
        if in_order and jobs:
            assert context.home.cluster.purge.exists()
        if in_order and jobs and removed_there:
            context.home.cluster.purge.unlink()
        real(jobs, in_order=in_order)

    monkeypatch.setattr("isthmus.clients.slurm.own_jobs.cancel", cancel)
    slurm.add(JOB_NAME)
    assert ending.down(context, lambda _: None, purge=True).left == left
    assert not context.home.cluster.folder.exists()


def test_purge_on_the_node_itself_removes_its_data(context, slurm, tmp_path):
    here = dataclasses.replace(context, settings=dataclasses.replace(context.settings, data_dir=tmp_path))
    claim(context, location.node())
    disk = node_disk.of(context.home.cluster, tmp_path)
    ended = ending.down(here, lambda _: None, purge=True)
    assert str(disk.folder) in ended.removed
    assert (disk.folder.exists(), ended.left) == (False, "")


def test_down_without_purge_says_nothing_of_it(context, slurm):
    claim(context, "c9")
    assert ending.down(context, lambda _: None).left == ""
    assert not context.home.cluster.purge.exists()
