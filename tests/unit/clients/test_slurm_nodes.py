"""What scontrol prints of nodes, as Slurm 24.11 writes it."""

import pytest

from isthmus.clients.slurm import nodes
from isthmus.clients.slurm.commands import SlurmError
from isthmus.clients.slurm.nodes import NodeState, read_nodes

SHOWN = """\
NodeName=b1 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=1 CPUTot=1 CPULoad=0.00
   NodeAddr=10.0.0.11 NodeHostName=b1
   State=DOWN+CLOUD+POWERED_DOWN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=batch
   Reason=isthmus: cloud: it failed [x] : ResumeTimeout reached [slurm@2026-11-24T12:01:53]

NodeName=b2 Arch=x86_64 CoresPerSocket=1
   State=IDLE+CLOUD ThreadsPerCore=1
   Extra=State=DOWN

"""


def test_states_and_reasons_are_read():
    assert read_nodes(SHOWN) == {
        "b1": NodeState(
            frozenset({"DOWN", "CLOUD", "POWERED_DOWN"}), "isthmus: cloud: it failed [x] : ResumeTimeout reached"
        ),
        "b2": NodeState(frozenset({"IDLE", "CLOUD"}), ""),
    }


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    program = tmp_path / "scontrol"
    program.write_text(f"#!/bin/sh\nenv | grep ^SLURM_ >> {tmp_path}/seen\nprintf '%s\\n' \"$@\" >> {tmp_path}/seen\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_changes_are_one_call_without_the_options_of_whoever_started_it(scontrol, monkeypatch):
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    nodes.update_nodes(["b1", "b2"], State="DOWN", Reason="isthmus: cloud: no room")
    assert (scontrol / "seen").read_text().splitlines() == [
        "SLURM_CONF=/etc/slurm/slurm.conf",
        "update",
        "NodeName=b1,b2",
        "State=DOWN",
        "Reason=isthmus: cloud: no room",
    ]


def test_slurmctld_that_does_not_answer_is_an_error(scontrol):
    (scontrol / "scontrol").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    with pytest.raises(SlurmError, match="Unable to contact"):
        nodes.host_names("b[1-2]")
