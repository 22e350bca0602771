"""Arguments that no other check reads are still refused before any change, by Ansible's own validator."""

import pytest
from jinja2 import StrictUndefined

from isthmus.filters.validate.arguments import argument_problems
from isthmus.filters.validate.check import cluster_problems, cluster_role_specs
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = cluster_role_specs(str(tree.ROOT / "roles"))
ANN = {"name": "ann", "uid": 2001}


def problems(*roles, **variables):
    site = Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, SPECS, Sources([]))
    return list(argument_problems(site, *roles))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"base_users": [ANN], "slurm_manage": "yes", "base_limits": []},
        # The rest is known on the nodes alone.
        {"base_users": [{"name": "ann", "uid": StrictUndefined()}]},
        {"somebody_elses": {"any": "thing"}},
    ],
)
def test_right_arguments_have_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "reported"),
    [
        ({"base_users": [{**ANN, "uidd": 3}]}, "unknown key base_users.uidd. Supported parameters include: comment"),
        (
            {"base_users": [{"name": "ann"}]},
            "missing required arguments: uid found in base_users; write it",
        ),
        ({"base_users": [{**ANN, "state": "gone"}]}, "value of state must be one of: present, absent, got: gone"),
        ({"slurm_manage": "maybe"}, "argument 'slurm_manage' is of type str"),
        ({"base_home_mode": "nfs4"}, "value of base_home_mode must be one of: bound, nfs"),
    ],
)
def test_wrong_arguments_name_variable_and_remedy(variables, reported):
    (found,) = problems(**variables)
    assert reported in found
    assert "meta/argument_specs.yml says" in found


def test_named_roles_are_checked_alone():
    assert problems("network", base_home_mode="nfs4") == []


def test_validation_ends_with_them():
    site = {"base_address": "10.0.0.1", "slurm_manage": "maybe"}
    groups = {"all": ["ctl"], "controller": ["ctl"], "compute": ["ctl"], "slurm": ["ctl"]}
    (found,) = cluster_problems({"ctl": site}, groups, SPECS, [tree.ROOT / "inventories" / "common"])
    assert "slurm_manage" in found
