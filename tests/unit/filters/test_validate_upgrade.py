"""Wanted versions and hooks that cannot be right are named before any host is asked."""

import pytest

from isthmus.filters.validate.layers.upgrade import upgrade_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources


def site(**variables):
    return Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, {}, Sources([]))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"slurm_version": ""},
        {"slurm_version": "24.11"},
        {"slurm_version": "24.11.5-4+deb13u1", "slurm_package_source": "release"},
        {"slurm_version": "26.05", "slurm_package_source": "forky", "slurm_mpi_default": "none"},
        {"slurm_version": "26.05", "slurm_mpi_default": "pmi2"},
        {"slurm_version": "26.05"},
        {"slurm_version": "26.05.5-1"},
        {"upgrade_hooks": {"before_controller": [["./notify", "soon"]], "after_batch": []}},
    ],
)
def test_right_requests_have_no_problem(variables):
    assert list(upgrade_problems(site(**variables))) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"slurm_version": 26.05}, "slurm_version is 26.05, a number; write it as text: '26.05'"),
        ({"slurm_version": "31.05"}, "Slurm 31.05 is none of the releases"),
        ({"slurm_version": "new"}, "'new' is no version"),
        ({"slurm_version": "25.11"}, "no plugin mpi/pmix, and slurm_mpi_default is pmix; take 26.05.5-1, for which"),
        ({"slurm_version": "26.05.6"}, "Debian's Slurm 26.05.6 has no plugin mpi/pmix"),
        ({"slurm_package_source": "forky"}, "slurm_version names none; set slurm_version too"),
        ({"slurm_package_source": "../x", "slurm_version": "24.11"}, "'../x', no name of a suite; write release"),
        (
            {"slurm_package_source": "forky", "slurm_version": "24.11", "cluster_bundle": "/b"},
            "a bundle has the packages of its own site; set it to release",
        ),
        ({"upgrade_hooks": {"before_lunch": []}}, "'before_lunch', no moment of an upgrade; name one of before_etcd"),
        ({"upgrade_hooks": {"before_etcd": ["rm x"]}}, "before_etcd: not all are commands; write each as a list"),
        ({"upgrade_hooks": {"before_etcd": [[]]}}, "before_etcd: not all are commands"),
    ],
)
def test_wrong_request_is_named_with_its_remedy(variables, message):
    problems = list(upgrade_problems(site(**variables)))
    assert len(problems) == 1
    assert message in problems[0]
