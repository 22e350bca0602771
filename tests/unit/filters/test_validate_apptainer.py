"""Bad input of the layer apptainer, refused before any change."""

import pytest
import yaml

from isthmus.filters.validate.layers.apptainer import apptainer_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources

DEB = {"apptainer_package_source": "url", "apptainer_package_url": "https://example.test/a.deb"}


def problems(tmp_path, **variables):
    path = tmp_path / "site.yml"
    path.write_text(yaml.safe_dump(variables))
    site = Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, {}, Sources([str(path)]))
    return [each.replace(str(path), "site.yml") for each in apptainer_problems(site)]


def subids(*ranges):
    return {"apptainer_subids": [dict(zip(("name", "start", "count"), each, strict=False)) for each in ranges]}


def mirrors(**given):
    return {"apptainer_registry_mirrors": {name.replace("_", "."): value for name, value in given.items()}}


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {**DEB, "apptainer_package_sha256": "a" * 64},
        mirrors(docker_io=["mirror.example:5000/hub", "10.0.0.1"]),
        subids(("alice", 100000, 10), ("bob", 100010, 10)),
    ],
)
def test_right_site_has_no_problem(tmp_path, variables):
    assert problems(tmp_path, **variables) == []


@pytest.mark.parametrize(
    ("variables", "reported"),
    [
        ({"apptainer_package_source": "url", "apptainer_package_sha256": "a" * 64}, "_url is empty; name the .deb"),
        (DEB, "apptainer_package_sha256 has 0 characters and is no SHA-256; give the 64 hex digits"),
        ({**DEB, "apptainer_package_sha256": "a" * 63}, "has 63 characters and is no SHA-256"),
        (mirrors(docker_io="mirror.example/hub"), "apptainer_registry_mirrors of docker.io is no list; write [mirror"),
        (mirrors(docker_io=["https://mirror.example"]), "has 'https://mirror.example', which is no registry; write"),
        (mirrors(docker_io=['x"']), "which is no registry"),
        (
            subids(("alice", 100000, 10), ("bob", 100009, 10)),
            "the range of alice (100000 to 100009) and the range of bob (100009 to 100018) overlap; give each user",
        ),
        (subids(("alice", 100000), ("bob", 100001, 1)), "the range of alice (100000 to 165535) and the range of bob"),
        (subids(("alice", 2000, 10)), "the range of alice (2000 to 2009) is not within 65536 and 4294967294"),
        (subids(("alice", 4294967290, 10)), "is not within 65536 and 4294967294; choose start and count"),
        (subids(("alice", 100000, 0)), "is not within"),
    ],
)
def test_problem_names_file_and_remedy(tmp_path, variables, reported):
    (found,) = problems(tmp_path, **variables)
    assert reported in found
    assert "site.yml:" in found
