import pytest

from isthmus.filters.validate.check import cluster_problems, cluster_role_specs
from tests.repo.tree import ROOT

SPECS = cluster_role_specs(str(ROOT / "roles"))
HOSTS = {"ctl": "192.0.2.1", "c1": "192.0.2.2"}


def problems(groups=None, **variables):
    reported = {"base_users": [], **variables}
    hostvars = {name: {"ansible_host": address, **reported} for name, address in HOSTS.items()}
    shape = {"all": [*HOSTS], "controller": ["ctl"], "compute": ["c1"], "etcd": ["ctl"], **(groups or {})}
    return "\n".join(cluster_problems(hostvars, shape, SPECS, []))


def test_service_by_itself_is_right():
    assert "join_" not in problems(join_service=True)


@pytest.mark.parametrize("port", [0, 443, 65536])
def test_port_must_be_an_unprivileged_users(port):
    assert f"join_port is {port}; use a port from 1024 to 65535" in problems(join_port=port)


def test_image_has_no_setuid_variant():
    assert "join_service is set with apptainer_setuid" in problems(join_service=True, apptainer_setuid=True)


def test_image_has_no_plugin_that_debian_does_not_build():
    found = "join_service is set with Slurm 26.05, whose plugin mpi/pmix is in no image"
    assert found in problems(join_service=True, slurm_version="26.05")
    assert found not in problems(join_service=True, slurm_version="26.05", slurm_mpi_default="pmi2")
    assert found not in problems(join_service=True, slurm_version="24.11")


def test_compute_node_must_be_nothing_else():
    found = problems({"etcd": ["ctl", "c1"]}, join_service=True)
    assert "c1 is more than a compute node" in found
