"""A Slurm of the site's own is used and left as it was; molecule's scenario `adopted` has one."""

import pytest

from tests.support.clusters import playbooks


@pytest.fixture(autouse=True)
def adopted(controller):
    """Only where the site has a Slurm of its own."""
    if controller.variables["slurm_manage"]:
        pytest.skip("Isthmus installed this Slurm")


@pytest.fixture
def kept(controller):
    """Where the scenario wrote down what the Slurm is made of."""
    root = controller.variables["slurm_prefix"].removesuffix("/usr")
    return root, f"{root}.sha256"


def test_user_runs_a_job(login, user, computes):
    assert login.run_as(user, "srun hostname") in {node.name for node in computes}


def test_no_file_of_it_was_changed(nodes, kept):
    root, sums = kept
    for node in nodes.values():
        node.output(f"sha256sum --quiet --check {sums}")
        assert node.output(f"find {root} -type f | wc -l") == node.output(f"wc -l < {sums}")


def test_no_second_slurm_was_installed(nodes):
    for node in nodes.values():
        assert "slurm" not in node.output("dpkg-query --show --showformat='${Package}\\n'")
        assert not node.host.file("/etc/slurm").exists


@pytest.mark.parametrize("variable", ["slurm_prefix", "slurm_conf_dir"])
def test_wrong_path_is_refused_with_its_remedy(variable):
    refused = playbooks.play(f"adopted_{variable}", "playbooks/slurm.yml", "-e", f"{variable}=/opt/elsewhere")
    assert refused.rc != 0
    assert f"set {variable} to" in refused.output
    assert not refused.changed
