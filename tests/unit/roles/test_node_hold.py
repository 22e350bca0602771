"""The module node_hold: only its own drains are set and lifted."""

import pytest

from tests.support import ansible_modules

hold = ansible_modules.load("library/node_hold.py")
NODE = "NodeName=c1 Version={version} OS=Linux State={state} Reason={reason} [root@2026-11-24T08:00:00] "
OURS = "isthmus: upgrade 24.11.5 26.05"


@pytest.mark.parametrize(
    ("state", "reason", "wanted", "changes"),
    [
        ("IDLE", "", "held", {"State": "DRAIN", "Reason": "isthmus: upgrade why"}),
        ("MIXED+DRAIN", "disk", "held", {}),
        ("IDLE+DRAIN", OURS, "held", {}),
        ("IDLE+DRAIN", OURS, "free", {"State": "RESUME"}),
        ("IDLE+DRAIN", "disk", "free", {}),
        ("IDLE", OURS, "free", {}),
    ],
)
def test_only_own_drains_are_set_and_lifted(state, reason, wanted, changes):
    shown = NODE.format(version="24.11.5", state=state, reason=reason)
    assert hold.decide(shown, wanted, "isthmus: upgrade", "why") == changes


@pytest.mark.parametrize(
    ("version", "state", "right"),
    [
        ("26.05.5", "IDLE+DRAIN", True),
        ("24.11.5", "IDLE+DRAIN", False),
        ("26.05.5", "IDLE*+DRAIN", False),
        ("26.05.5", "DOWN+DRAIN+NOT_RESPONDING", False),
        ("26.05", "IDLE", False),
        ("26.05.5", "UNKNOWN+DRAIN", False),
    ],
)
def test_node_is_back_when_slurmctld_hears_its_new_slurmd(version, state, right):
    assert hold.is_back(NODE.format(version=version, state=state, reason=OURS), "26.05.5-1") is right
