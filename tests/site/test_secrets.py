import shutil
import uuid
from pathlib import Path

import pytest

from tests.support.clusters import playbooks

KEPT = "ssh"


@pytest.fixture
def state(controller):
    """The deployer's folder of this cluster; put back as it was."""
    folder = Path(controller.variables["state_dir"])
    aside = folder.with_name(f"{folder.name}.aside")
    shutil.copytree(folder, aside)
    yield folder
    shutil.rmtree(folder)
    aside.rename(folder)


@pytest.fixture
def lost(state):
    """The same folder with nothing left but what reaches the nodes; yields what it held."""
    held = {path.name: path.read_bytes() for path in state.iterdir() if path.is_file()}
    assert {"cluster.id", "munge.key", "slurmdbd.password"} <= set(held)
    for name in held:
        (state / name).unlink()
    return held


@pytest.mark.parametrize(
    "playbook",
    [
        "site.yml",
        pytest.param("playbooks/base.yml", marks=pytest.mark.full),
        pytest.param("playbooks/slurm.yml", marks=pytest.mark.full),
    ],
)
def test_lost_secrets_of_a_live_cluster_are_refused(playbook, lost, controller, nodes):
    before = controller.output("sha256sum /etc/munge/munge.key /etc/slurm/slurmdbd.conf /etc/isthmus/cluster.json")
    refused = playbooks.play(f"lost_{Path(playbook).stem}", playbook)
    assert refused.rc != 0
    assert "playbooks/adopt_secrets.yml" in refused.output
    assert not refused.changed & set(nodes)
    after = controller.output("sha256sum /etc/munge/munge.key /etc/slurm/slurmdbd.conf /etc/isthmus/cluster.json")
    assert after == before


def test_adopted_secrets_are_the_lost_ones(lost, state):
    playbooks.succeed("adopt_secrets", "playbooks/adopt_secrets.yml")
    found = {path.name: path.read_bytes() for path in state.iterdir() if path.is_file()}
    assert {name: found[name] for name in lost} == lost
    assert {path.stat().st_mode & 0o077 for path in state.iterdir()} == {0}
    assert not playbooks.succeed("after_adoption", "playbooks/slurm.yml").changed


@pytest.mark.full
def test_cluster_of_another_identity_is_refused(state, nodes):
    (state / "cluster.id").write_text(str(uuid.uuid4()))
    refused = playbooks.play("other_identity", "playbooks/base.yml")
    assert refused.rc != 0
    assert "cluster.json" in refused.output or "identity" in refused.output
    assert not refused.changed & set(nodes)
