import pytest

from isthmus.filters.validate.check import cluster_role_specs
from isthmus.filters.validate.layers.artifacts import artifact_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = cluster_role_specs(str(tree.ROOT / "roles"))


def problems(**variables):
    site = Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, SPECS, Sources([]))
    return list(artifact_problems(site))


@pytest.mark.parametrize(
    "variables",
    [{}, {"artifacts_programs": ["etcd"], "artifacts_order": ["build"]}, {"artifacts_mirror": "https://mirror.test/x"}],
)
def test_right_choice_has_no_problem(variables):
    assert problems(**variables) == []


def test_mirror_with_an_index_has_no_problem(tmp_path):
    (tmp_path / "programs.json").write_text("{}")
    assert problems(artifacts_mirror=str(tmp_path)) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"artifacts_programs": ["kubctl"]}, "unknown name in artifacts_programs: 'kubctl'; did you mean 'kubectl'?"),
        ({"artifacts_order": ["magic"]}, "unknown name in artifacts_order: 'magic'"),
        ({"artifacts_order": []}, "artifacts_order is []; name each way at most once"),
        ({"artifacts_order": ["build", "build"]}, "artifacts_order is ['build', 'build']"),
        ({"artifacts_mirror": "/nowhere"}, "artifacts_mirror /nowhere has no programs.json; lay out a bundle there"),
    ],
)
def test_wrong_choice_is_reported(variables, message):
    (problem,) = problems(**variables)
    assert message in problem
