import json

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.join import join_manifest
from isthmus.node.manifest import parse

PARTS = [
    {
        "release": "r",
        "cluster": {"name": "dev", "id": "i"},
        "packages": ["b"],
        "hostname": True,
        "certificate_days": "90",
    },
    {"units": [{"name": "munge", "files": []}, {"name": "slurmd", "files": []}], "packages": ["slurmd", "a"]},
    {"units": [{"name": "isthmus-networkd", "files": []}], "files": [{"path": "/etc/a", "content": "1"}]},
    {},
]


def made(parts=PARTS):
    return join_manifest(parts, "compute", {"c3": "192.0.2.3"}, {"slurmd": "24"})


def test_parts_become_a_manifest_that_nodes_read():
    found = parse(json.dumps(made()))
    assert (found.release, found.hostname, found.certificate_days) == ("r", True, 90)
    assert found.packages == {"a": "", "b": "", "slurmd": "24"}
    assert dict(found.nodes) == {"c3": "192.0.2.3"}


def test_slurmd_runs_when_all_else_does():
    assert [unit["name"] for unit in made()["units"]] == ["munge", "isthmus-networkd", "slurmd"]


def test_two_manifests_share_nothing():
    made()["files"].append("more")
    assert made()["files"] == PARTS[2]["files"]


def test_field_that_nodes_do_not_know_is_refused():
    with pytest.raises(InputError, match="'colour'"):
        made([{"colour": "blue"}])


def test_file_of_two_roles_must_be_one():
    same, other = {"path": "/etc/a", "content": "1"}, {"path": "/etc/a", "content": "2"}
    made([{"files": [same]}, {"files": [same]}, {"files": [{**other, "when": "machine"}]}])
    with pytest.raises(InputError, match="two roles describe /etc/a"):
        made([{"files": [same]}, {"files": [other]}])
