"""One site on each provider: what the layers get is the same, but for addresses and how hosts are reached."""

import json
import subprocess

import pytest
import yaml

from tests.support.clusters.cluster import BIN, ROOT

NODES = {
    "ctl": {"group": "controller", "at": 10},
    "login": {"group": "login", "at": 11},
    "c": {"group": "compute", "count": 2, "at": 21, "vars": {"slurm_node": {"cpus": 8, "memory_mib": 1000}}},
}
CLOUD = {"cidr": "192.0.2.0/24", "machines": {name: {"flavor": "m1"} for name in NODES}}
COMPUTE = {f"c{number}": {"ansible_host": f"192.0.2.{20 + number}", **NODES["c"]["vars"]} for number in (1, 2)}
HOSTS = {
    "controller": {"hosts": {"ctl": {"ansible_host": "192.0.2.10"}}},
    "login": {"hosts": {"login": {"ansible_host": "192.0.2.11"}}},
    "compute": {"hosts": COMPUTE},
    "c": {"hosts": dict.fromkeys(COMPUTE)},
}
SOURCES = {
    "existing": HOSTS,
    "local": {**HOSTS, "provider_local": {"hosts": {name: {"provider_local_index": 2} for name in ("ctl", "login")}}},
    "openstack": {"plugin": "cluster_nodes", "provider": "openstack", "nodes": NODES, "openstack": CLOUD},
    "parallelcluster": {"plugin": "cluster_nodes", "provider": "parallelcluster", "nodes": NODES},
}
# Of the site, whatever machines it is on.
SITE = {
    "cluster_name": "hpc",
    "base_users": [{"name": "ada", "uid": 2001}],
    "slurm_partitions": [{"name": "batch", "nodes": ["c"], "default": True}],
}


def inventory(folder, source):
    """What Ansible reads of a provider's inventory."""
    common = ROOT / "inventories/common"
    (folder / "group_vars/all").mkdir(parents=True)
    (folder / "groups.yml").symlink_to(common / "groups.yml")
    (folder / "group_vars/all/00_common").symlink_to(common / "group_vars/all")
    (folder / "group_vars/all/site.yml").write_text(yaml.safe_dump(SITE))
    (folder / "nodes.yml").write_text(yaml.safe_dump(source))
    command = [BIN / "ansible-inventory", "-i", folder, "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def for_layers(found):
    """Groups and variables that layers read; a provider's own are left out."""
    groups = {
        name: group.get("hosts", []) for name, group in found.items() if not name.startswith(("_", "all", "provider_"))
    }
    variables = {
        host: {name: value for name, value in given.items() if name in (*SITE, "slurm_node")}
        for host, given in found["_meta"]["hostvars"].items()
    }
    return groups, variables


@pytest.fixture(scope="module")
def existing(tmp_path_factory):
    return inventory(tmp_path_factory.mktemp("existing"), SOURCES["existing"])


@pytest.mark.parametrize("provider", ["local", "openstack"])
def test_layers_get_the_same_on_each_provider(provider, existing, tmp_path):
    found = inventory(tmp_path, SOURCES[provider])
    assert for_layers(found) == for_layers(existing)


def test_parallelcluster_differs_in_compute_nodes_alone_which_it_names_and_which_join(existing, tmp_path):
    (groups, variables), (same, others) = map(for_layers, (inventory(tmp_path, SOURCES["parallelcluster"]), existing))
    assert groups.pop("joining") == groups["c"]
    assert len(groups.pop("c")) == len(same.pop("c")) == len(same.pop("compute"))
    assert groups == same
    assert [variables[host] for host in ("ctl", "login")] == [others[host] for host in ("ctl", "login")]
    assert all(given == others["c1"] for host, given in variables.items() if host not in ("ctl", "login"))


def test_openstack_gives_the_addresses_that_the_file_says(existing, tmp_path):
    one, other = (
        {host: given["ansible_host"] for host, given in found["_meta"]["hostvars"].items()}
        for found in (inventory(tmp_path, SOURCES["openstack"]), existing)
    )
    assert one == other


def test_bad_file_is_refused_with_its_name_and_remedy(tmp_path):
    (tmp_path / "nodes.yml").write_text(yaml.safe_dump({**SOURCES["openstack"], "provider": "openstak"}))
    command = [BIN / "ansible-inventory", "-i", tmp_path, "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "did you mean 'openstack'" in " ".join(done.stderr.split())
