"""Which data are the newest, and which snapshots count."""

import json

import pytest

from isthmus.controlplane.data import claims
from isthmus.controlplane.data.claims import Claim, Source
from isthmus.controlplane.data.snapshots import Snapshot
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.settings import DataLocation

ONE, TWO = Snapshot(1, 50), Snapshot(2, 70)


def claim(data=DataLocation.NODE, base="", generation=2):
    return Claim("id", generation, data, "c1", base)


@pytest.mark.parametrize(
    ("found", "is_here", "at_home", "usable", "wanted"),
    [
        (None, False, False, [], Source.NOTHING),
        (None, False, True, [], Source.HOME),
        # A claim that was removed by hand.
        (None, False, False, [ONE], Source.SNAPSHOT),
        (claim(DataLocation.HOME), False, True, [], Source.HOME),
        (claim(DataLocation.HOME), False, False, [ONE], Source.NOTHING),
        (claim(), True, False, [TWO], Source.NODE),
        # Old data of the home never win against those of the claim.
        (claim(), True, True, [], Source.NODE),
        (claim(), False, True, [TWO], Source.SNAPSHOT),
        (claim(base=claims.HOME), False, True, [TWO], Source.SNAPSHOT),
        # The node died before its first snapshot.
        (claim(base=claims.HOME), False, True, [], Source.HOME),
        (claim(), False, True, [], Source.NOTHING),
        (claim(), False, False, [], Source.NOTHING),
    ],
)
def test_newest(found, is_here, at_home, usable, wanted):
    assert claims.newest(found, is_here=is_here, at_home=at_home, usable=usable) is wanted


@pytest.mark.parametrize("base", [ONE.name, claims.HOME])
def test_lost_data_are_never_replaced_by_an_empty_cluster(base):
    with pytest.raises(ControlPlaneError, match="on the disk of c1 alone"):
        claims.newest(claim(base=base), is_here=False, at_home=False, usable=[])


@pytest.mark.parametrize(
    ("found", "there", "wanted"),
    [
        (None, [ONE, TWO], [TWO, ONE]),
        (claim(base=""), [ONE, TWO], [TWO]),
        (claim(base=claims.HOME), [ONE, TWO], [TWO]),
        (claim(base=ONE.name), [ONE, TWO, Snapshot(2, 80, True)], [Snapshot(2, 80, True), TWO, ONE]),
        (claim(base=ONE.name), [Snapshot(1, 40), ONE], [ONE, Snapshot(1, 40)]),
        # By a node that was cut off, when others had gone on with ONE.
        (claim(base=ONE.name), [ONE, Snapshot(1, 60)], [ONE]),
        (claim(base=ONE.name), [Snapshot(1, 60), TWO], [TWO]),
        (claim(base=ONE.name), [Snapshot(3, 1)], []),
    ],
)
def test_candidates(found, there, wanted):
    assert claims.candidates(there, found) == wanted


@pytest.mark.parametrize(
    ("before", "there", "generation"),
    [(None, [], 1), (None, [TWO], 3), (claim(), [], 3), (claim(), [Snapshot(9, 1)], 10)],
)
def test_next_claim_is_above_all(before, there, generation):
    made = claims.next_claim(before, there, DataLocation.NODE, "c2", "")
    assert (made.generation, made.node) == (generation, "c2")
    assert made.id != claims.next_claim(before, there, DataLocation.NODE, "c2", "").id


def test_claim_is_read_as_written_and_none_is_none(tmp_path):
    layout = Layout(tmp_path)
    assert claims.read(layout) is None
    claims.write(layout, claim(base=ONE.name))
    assert claims.read(layout) == claim(base=ONE.name)


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"schema": 2}), json.dumps({"schema": 1, "id": "x"})])
def test_broken_claim_is_reported(tmp_path, text):
    layout = Layout(tmp_path)
    layout.claim.write_text(text)
    with pytest.raises(ControlPlaneError, match="remove it, and the newest snapshot is used"):
        claims.read(layout)
