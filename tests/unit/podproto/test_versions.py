"""A kubelet and a supervisor of neighbouring releases: what each wrote when it was new, the other still reads.

tests/support/pods/contract_v1.json is what version 1 said when it was first spoken. It is never changed; what is added
to the contract must leave it readable, and readable for it.
"""

import json
from pathlib import Path

import pytest

from isthmus.podproto import WINDOWS, plan, reports, versions
from isthmus.podproto.versions import VersionError

KEPT = json.loads((Path(__file__).parents[2] / "support/pods/contract_v1.json").read_text())
KUBELET, SUPERVISOR = KEPT["kubelet"], KEPT["supervisor"]
# What the reader of version 1 did without.
LATER = {"is_group_kept", "seccomp", "image_name", "mpi_home"}


def keys(value):
    """Give the names of all objects of a message."""
    if isinstance(value, dict):
        yield set(value)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys(one)


def test_plan_of_the_version_before_is_read():
    reported = plan.read(KUBELET["plan"]["plan"])
    assert [one.name for one in (*reported.init, *reported.containers)] == ["side", "main"]
    assert reported.containers[0].readiness.action.kind == plan.ActionKind.GRPC
    assert reported.volumes[0].files[0].data == b"secret"


def test_later_messages_of_the_version_before_are_read():
    volumes = plan.read(KUBELET["plan"]["plan"]).volumes
    assert plan.volumes(KUBELET["update"]["volumes"]) == volumes[:1]
    assert plan.container(KUBELET["ephemeral"]["container"], volumes).name == "side"
    assert plan.container(KUBELET["replace"]["container"], volumes).image_name == "a:1"


def test_supervisor_of_the_version_before_reads_what_is_written_now():
    before = KUBELET["plan"]["plan"]
    now = json.loads(json.dumps(plan.to_json(plan.read(before), 1)))
    assert now["schema"] == 1
    for old, new in zip(keys(before), keys(now), strict=True):
        # Its reader refused what it did not know, and what was missing.
        assert new <= old
        assert old - new <= LATER


def test_report_of_the_version_before_is_taken():
    assert reports.checked(SUPERVISOR["report"])["containers"]["main"]["reason"] == "CrashLoopBackOff"
    assert reports.checked_hello(SUPERVISOR["hello"])["features"] == [WINDOWS]
    assert reports.checked_end(SUPERVISOR["end"])["exit_code"] == 0
    assert reports.checked_window(SUPERVISOR["window"])["bytes"] == 1000


def test_kubelet_of_the_version_before_takes_the_hello_of_now():
    """It took a hello whose `version` was its own, whatever else was there."""
    assert versions.said()["version"] == SUPERVISOR["hello"]["version"]


@pytest.mark.parametrize(
    ("supervisor", "kubelet", "spoken"),
    [((1,), (1,), 1), ((1,), (1, 2), 1), ((1, 2), (1,), 1), ((1, 2), (1, 2), 2), ((2, 3), (1, 2), 2)],
)
def test_newest_version_that_both_speak_is_agreed_on(supervisor, kubelet, spoken):
    assert versions.agreed(versions.said(supervisor), kubelet) == spoken


def test_hello_without_a_list_is_of_one_version():
    assert versions.agreed(SUPERVISOR["hello"], (1, 2)) == 1
    with pytest.raises(VersionError, match=r"it speaks version 1, this kubelet 2, 3; give its node"):
        versions.agreed(SUPERVISOR["hello"], (2, 3))


@pytest.mark.parametrize("hello", [{}, {"version": None}, {"versions": 1}, {"versions": ["1"]}, {"versions": [True]}])
def test_hello_that_names_no_version_is_refused(hello):
    with pytest.raises(VersionError):
        versions.agreed(hello)
