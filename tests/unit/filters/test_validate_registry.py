"""What is wrong with a registry's variables is told before any change."""

import pytest

from isthmus.filters.validate.check import cluster_role_specs
from isthmus.filters.validate.layers.registry import registry_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = cluster_role_specs(str(tree.ROOT / "roles"))


def problems(**variables):
    site = Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, SPECS, Sources([]))
    return list(registry_problems(site))


@pytest.mark.parametrize(
    "variables", [{}, {"registry_address": "ctl:5000", "registry_images": ["debian"]}, {"registry_images": []}]
)
def test_right_registry_has_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"registry_address": "ctl:5000/images"}, "registry_address: 'ctl:5000/images' is no address of a registry"),
        ({"registry_push_address": "localhost:70000"}, "registry_push_address: 'localhost:70000' has no usable port"),
        ({"registry_address": 5000}, "registry_address: '5000' is no address"),
        ({"registry_images": "debian"}, "registry_images is no list; list names of build/images"),
        ({"registry_images": ["busibox"]}, "unknown image in registry_images: 'busibox'; did you mean 'busybox'?"),
    ],
)
def test_wrong_registry_is_told(variables, message):
    (problem,) = problems(**variables)
    assert message in problem
