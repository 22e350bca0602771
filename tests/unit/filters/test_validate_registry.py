"""What is wrong with a registry's variables is reported before any change."""

import pytest

from isthmus.filters.validate.check import cluster_role_specs
from isthmus.filters.validate.layers.registry import registry_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = cluster_role_specs(str(tree.ROOT / "roles"))

ALICE = {"base_users": [{"name": "alice"}]}


def problems(**variables):
    site = Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, SPECS, Sources([]))
    return list(registry_problems(site))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"registry_address": "ctl:5000", "registry_images": ["debian"]},
        {"registry_images": []},
        {**ALICE, "registry_quota_gib": 0, "registry_quotas": {"alice": 0.5}},
    ],
)
def test_right_registry_has_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"registry_address": "ctl:5000/images"}, "registry_address: 'ctl:5000/images' is no address of a registry"),
        ({"registry_address": "localhost:70000"}, "registry_address: 'localhost:70000' has no usable port"),
        (
            {"base_users": [{"name": "library"}]},
            "user 'library' would have the site's own images in the registry for theirs",
        ),
        ({"registry_users": ["mpi"]}, "give them another name, or leave them out of registry_users"),
        ({"registry_quota_gib": -1}, "registry_quota_gib: -1 is no size; write GiB, 0 or more"),
        ({"registry_reserve_gib": "much"}, "registry_reserve_gib: 'much' is no size"),
        ({"registry_layer_gib": 0}, "registry_layer_gib: 0 lets nobody push; write GiB, 1 or more"),
        ({"registry_quotas": ["alice"]}, "registry_quotas is no dict; write user: GiB"),
        ({"registry_quotas": {"alice": "x"}}, "registry_quotas: 'x' of alice is no size"),
        ({**ALICE, "registry_quotas": {"alcie": 1}}, "unknown user in registry_quotas: 'alcie'; did you mean 'alice'?"),
        ({"registry_address": 5000}, "registry_address: '5000' is no address"),
        ({"registry_images": "debian"}, "registry_images is no list; list names of build/images"),
        ({"registry_images": ["busibox"]}, "unknown image in registry_images: 'busibox'; did you mean 'busybox'?"),
    ],
)
def test_wrong_registry_is_reported(variables, message):
    (problem,) = problems(**variables)
    assert message in problem
