"""When a node is drained and resumed by its own examination, and what counts as a fault."""

import os
import threading
import time
from types import SimpleNamespace

import pytest

from isthmus.cli.node import health as node_health
from isthmus.clients.process import Finished

OURS = "isthmus: health: /dev/fuse is missing"
SHOWN = """NodeName=c1 Arch=x86_64 CoresPerSocket=1
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1
   Reason={reason} [root@2026-11-23T05:00:00]
"""
FSTAB = """# a comment with /words in it defaults
nas:/home /home nfs defaults 0 0
UUID=1 /boot ext4 defaults 0 2
/dev/sdb /spare ext4 noauto 0 0
/dev/sdc /maybe ext4 defaults,nofail 0 0
UUID=2 none swap sw 0 0
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


def test_what_fstab_wants_is_mounted_or_named():
    mounted = "/dev/sda / ext4 rw 0 0\nUUID=1 /boot ext4 rw 0 0\n"
    assert node_health.missing_mounts(FSTAB, mounted) == ["/home"]
    assert node_health.missing_mounts(FSTAB, f"{mounted}nas:/home /home nfs4 rw 0 0\n") == []


def test_look_that_hangs_or_fails_is_no_answer(tmp_path):
    assert node_health.answers(lambda: os.listdir(tmp_path), 5)
    assert not node_health.answers(lambda: os.listdir(tmp_path / "none"), 5)
    never = threading.Event()
    began = time.monotonic()
    assert not node_health.answers(never.wait, 0.05)
    assert time.monotonic() - began < 5
    never.set()


@pytest.mark.parametrize(("room", "names", "is_full"), [(2, 2, False), (0, 50, True), (50, 0, True), (50, None, False)])
def test_full_lacks_room_or_names(room, names, is_full):
    files = (0, 0) if names is None else (100, names)
    found = SimpleNamespace(f_blocks=100, f_bavail=room, f_files=files[0], f_favail=files[1])
    assert node_health.full(found) is is_full


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


def test_daemon_that_is_not_there_is_a_fault(monkeypatch, tmp_path):
    monkeypatch.setattr(node_health, "ROOT_SOCKET", tmp_path / "none")
    assert not node_health.network_answers(time.monotonic() + 0.5)
