"""When a node is drained and resumed by its own examination, and what counts as a fault."""

import pytest

from isthmus.cli.node import health as node_health
from isthmus.clients.process import Finished

OURS = "isthmus: health: /dev/fuse is missing"
SHOWN = """NodeName=c1 Arch=x86_64 CoresPerSocket=1
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1
   Reason={reason} [root@2026-11-23T05:00:00]
"""
DRAIN = {"State": "DRAIN", "Reason": OURS}
RESUME = {"State": "RESUME"}


@pytest.mark.parametrize(
    ("problems", "flags", "reason", "change"),
    [
        ([], {"IDLE"}, "", {}),
        ([], {"IDLE", "DRAIN"}, OURS, RESUME),
        ([], {"IDLE", "DRAIN"}, "new disk", {}),
        ([], {"IDLE", "DRAIN"}, "isthmus: new disk", {}),
        ([], {"DOWN"}, OURS, {}),  # somebody resumed it, and it died
        (["/dev/fuse is missing"], {"IDLE"}, "", DRAIN),
        (["/dev/fuse is missing"], {"MIXED"}, OURS, DRAIN),  # somebody resumed it too early
        (["/dev/fuse is missing"], {"IDLE", "DRAIN"}, OURS, {}),
        (["/dev/fuse is missing"], {"IDLE", "DRAIN"}, "isthmus: health: /tmp is full", DRAIN),
        (["/dev/fuse is missing"], {"IDLE", "DRAIN"}, "new disk", {}),
    ],
)
def test_only_own_drains_are_touched(problems, flags, reason, change):
    assert node_health.decide(problems, flags, reason) == change


def test_slurms_words_are_read():
    assert node_health.parse(SHOWN.format(state="IDLE+DRAIN", reason=OURS)) == ({"IDLE", "DRAIN"}, OURS)
    assert node_health.parse(SHOWN.format(state="IDLE", reason="disk [sda]")) == ({"IDLE"}, "disk [sda]")
    assert node_health.parse("   State=IDLE Weight=1\n") == ({"IDLE"}, "")


@pytest.fixture
def slurm(monkeypatch, tmp_path):
    """What is asked of Slurm, which knows a node that our own drain holds."""
    asked = []

    def run(argv, **_):
        asked.append(argv[1:])
        return Finished(SHOWN.format(state="IDLE+DRAIN", reason=OURS), "")

    monkeypatch.setattr(node_health, "run", run)
    monkeypatch.setattr(node_health, "WELL", tmp_path / "well")
    return asked


def test_node_that_stays_well_asks_nothing(slurm):
    node_health.apply_health([], "c1")
    assert slurm == [["show", "node", "c1"], ["update", "NodeName=c1", "State=RESUME"]]
    node_health.apply_health([], "c1")
    assert len(slurm) == 2
    node_health.apply_health(["/tmp is full"], "c1")
    assert slurm[2:] == [
        ["show", "node", "c1"],
        ["update", "NodeName=c1", "State=DRAIN", "Reason=isthmus: health: /tmp is full"],
    ]
    node_health.apply_health([], "c1")
    assert slurm[-1] == ["update", "NodeName=c1", "State=RESUME"]
