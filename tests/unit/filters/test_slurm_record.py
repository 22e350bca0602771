"""The hardware that nodes had: kept while they are down, refused where it shrinks."""

import pytest

from isthmus.filters.slurm.record import slurm_recorded, slurm_shrunk
from isthmus.filters.slurm.site import slurm_compute, slurm_undeclared

WHOLE = {"processor_vcpus": 4, "memtotal_mb": 16000}
DECLARED = {"cpus": 2, "memory_mib": 1000}


def changed(**facts):
    return {**WHOLE, **facts}


def recorded(facts, record=WHOLE, declared=None, accepted=()):
    hostvars = {"c1": {"ansible_facts": facts, "slurm_node": declared or {}}}
    return slurm_recorded(["c1"], hostvars, {"c1": record} if record else {}, accepted).get("c1")


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        (WHOLE, WHOLE),
        ({}, WHOLE),
        ({"processor_vcpus": 8}, WHOLE),
        (changed(memtotal_mb=15800), WHOLE),
        (changed(memtotal_mb=16200), WHOLE),
        (changed(memtotal_mb=8000), WHOLE),
        (changed(processor_vcpus=3), WHOLE),
        (changed(memtotal_mb=32000), changed(memtotal_mb=32000)),
        (changed(processor_vcpus=8), changed(processor_vcpus=8)),
    ],
)
def test_record_keeps_what_a_node_had_and_takes_more(facts, kept):
    assert recorded(facts) == kept


def test_new_node_is_recorded_without_other_facts():
    assert recorded({**WHOLE, "distribution": "Debian"}, record=None) == WHOLE


def test_record_has_no_node_that_nobody_has_seen():
    assert recorded({}, record=None) is None


def test_record_forgets_what_is_declared_or_removed():
    assert recorded(WHOLE, declared=DECLARED) is None
    assert slurm_recorded([], {}, {"c1": WHOLE}) == {}


def test_accepted_node_may_have_less():
    assert recorded(changed(memtotal_mb=8000), accepted=["c1"]) == changed(memtotal_mb=8000)


@pytest.mark.parametrize(
    ("facts", "declared", "lost"),
    [
        (WHOLE, {}, ""),
        ({}, {}, ""),
        (changed(memtotal_mb=15700), {}, ""),
        (changed(memtotal_mb=15600), {}, "has 15600 MiB of memory and had 16000"),
        (changed(memtotal_mb=8000), {"memory_mib": 7000}, ""),
        (changed(processor_vcpus=2), {}, "has 2 CPUs and had 4"),
        (changed(processor_vcpus=2), {"cpus": 2}, ""),
    ],
)
def test_loss_is_named(facts, declared, lost):
    assert slurm_shrunk(facts, declared, WHOLE) == lost


def test_node_without_a_record_has_lost_nothing():
    assert slurm_shrunk(WHOLE, {}, {}) == ""


def test_node_that_is_down_keeps_its_line():
    down = {"base_address": "10.0.0.1"}
    (host,) = slurm_compute(["c1"], {"c1": down}, {"c1": WHOLE})
    assert host == {"name": "c1", "address": "10.0.0.1", "cpus": 4, "memory_mib": 15200}
    assert slurm_undeclared(["c1", "c2"], {"c1": down, "c2": down}, {"c1": WHOLE}) == ["c2"]
