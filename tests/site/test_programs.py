import pytest

from tests.support.clusters import playbooks

PLAYBOOK = "playbooks/network.yml"
PROGRAM = "/opt/isthmus/program"
INVOCATION = "systemctl show --property InvocationID --value isthmus-networkd"


@pytest.fixture
def other_programs(computes, whole):
    """A compute node that says it has programs of another version; afterwards as it was."""
    node = computes[0]
    key = node.output(f"cat {PROGRAM}")
    node.output(f"echo other > {PROGRAM}")
    yield node
    node.output(f"echo {key} > {PROGRAM}")
    assert playbooks.succeed("programs_back", PLAYBOOK).changed == {node.name}


@pytest.mark.full
def test_daemon_restarts_on_other_programs(other_programs, computes):
    before = [node.output(INVOCATION) for node in computes]
    assert playbooks.succeed("programs", PLAYBOOK).changed == {other_programs.name}
    changed = [was != node.output(INVOCATION) for was, node in zip(before, computes, strict=True)]
    assert changed == [True] + [False] * (len(computes) - 1)
