"""Bad input about Apptainer with setuid and its networks, refused before any change."""

import pytest
import yaml

from isthmus.filters.validate.layers.setuid import setuid_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = {"apptainer": tree.load(tree.ROOT / "roles/apptainer/meta/argument_specs.yml")}
USERS = [{"name": "alice", "uid": 2001}, {"name": "bob", "uid": 2002}, {"name": "eve", "uid": 2003, "state": "absent"}]
ON = {"apptainer_setuid": True}


def network(name="flannel", **plugin):
    return {"apptainer_networks": {name: [{"type": "flannel"} | plugin]}}


def problems(tmp_path, **variables):
    variables = {"base_users": USERS} | variables
    path = tmp_path / "site.yml"
    path.write_text(yaml.safe_dump(variables))
    site = Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, SPECS, Sources([str(path)]))
    return [each.replace(str(path), "site.yml") for each in setuid_problems(site)]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        ON,
        ON | {"apptainer_net_users": ["alice"], "apptainer_net_networks": ["bridge"]},
        ON | network() | {"apptainer_net_networks": ["flannel"]},
        ON | {"apptainer_net_networks": ["bridge", "flannel"], "network_drivers": ["private", "flannel"]},
        ON | network(ipam={"type": "host-local", "subnet": "10.9.0.0/16"}),
        {"apptainer_net_users": ["ldap"], "apptainer_subids": [{"name": "ldap", "start": 700000}]},
        {"apptainer_conf": {"allow setuid": False}},
        ON | {"apptainer_conf": {"mount home": False}},
    ],
)
def test_right_site_has_no_problem(tmp_path, variables):
    assert problems(tmp_path, **variables) == []


@pytest.mark.parametrize(
    ("variables", "reported"),
    [
        ({"apptainer_net_users": ["alise"]}, "unknown user in apptainer_net_users: 'alise'; did you mean 'alice'? "),
        ({"apptainer_net_users": ["eve"]}, "unknown user in apptainer_net_users: 'eve'; known: alice, bob"),
        ({"apptainer_net_networks": ["brige"]}, "unknown network in apptainer_net_networks: 'brige'; did you mean 'br"),
        (network() | {"apptainer_net_networks": ["bridge"]}, "unknown network in apptainer_net_networks: 'bridge'"),
        (network("../x"), "'../x' is no name for a network of apptainer_networks; use a-z, 0-9"),
        (network("fakeroot"), "'fakeroot' is no name for a network of apptainer_networks; use"),
        (
            {"apptainer_networks": {"flat": []}},
            "network flat of apptainer_networks is no list of CNI plugins; give each",
        ),
        (network(type=""), "network flannel of apptainer_networks is no list of CNI plugins"),
        (network(ipam={"subnet": "10.9.0.1/16"}), "has the subnet '10.9.0.1/16'; write an IPv4 network such as"),
        (
            ON | {"apptainer_package_source": "url"},
            "apptainer_setuid builds a package of its own, and apptainer_package_",
        ),
        (ON | {"apptainer_conf": {"allow net users": ["eve"]}}, "apptainer_conf sets 'allow net users', which follows"),
        (ON | {"apptainer_conf": {"allow setuid": False}}, "apptainer_conf sets 'allow setuid', which follows from"),
    ],
)
def test_problem_names_file_and_remedy(tmp_path, variables, reported):
    (found,) = problems(tmp_path, **variables)
    assert reported in found
    assert found.startswith("site.yml:")
