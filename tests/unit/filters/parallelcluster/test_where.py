import json

import pytest

from isthmus.filters.parallelcluster.where import where

GROUPS = {"controller": ["ctl"], "login": ["login1", "login2"], "joining": ["batch-st-cpu-1"]}


def instance(name, role, address, node="", state="running"):
    return {"id": name, "role": role, "node": node, "private": address, "public": "", "state": state}


RECORD = json.dumps(
    {
        "instances": [
            instance("i-2", "login", "10.0.0.6"),
            instance("i-1", "login", "10.0.0.5"),
            instance("i-0", "head", "10.0.0.4") | {"public": "192.0.2.4"},
            instance("i-3", "compute", "10.0.0.7", "batch-st-cpu-1", state="terminated"),
            instance("i-4", "compute", "10.0.0.8", "batch-st-cpu-1"),
        ]
    }
)


@pytest.mark.parametrize(
    ("host", "private", "public"),
    [
        ("ctl", "10.0.0.4", "192.0.2.4"),
        ("login1", "10.0.0.5", ""),
        ("login2", "10.0.0.6", ""),
        ("batch-st-cpu-1", "10.0.0.8", ""),
        ("batch-dy-cpu-1", "", ""),
    ],
)
def test_address_of_a_host(host, private, public):
    assert where(RECORD, host, GROUPS) == {"private": private, "public": public}


@pytest.mark.parametrize("text", ["", "\n", '{"instances": []}'])
def test_nothing_is_nowhere(text):
    assert where(text, "ctl", GROUPS) == {"private": "", "public": ""}
