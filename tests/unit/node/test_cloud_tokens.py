"""Tokens that slurmctld's user makes: what the service trusts of them, and what not."""

import json
import time

import pytest

from isthmus.node import cloud, tokens
from isthmus.node.service.records import Records


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "ca.crt").write_bytes(b"certificate")
    for name in ("state/tokens", "state/cloud", "settings"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "settings/cloud.json").write_text('["b1", "b2"]')
    monkeypatch.setattr(cloud.certificates, "pin", lambda certificate: "0" * 64)
    return tmp_path


@pytest.fixture
def made(folder):
    return cloud.CloudTokens(folder / "state/cloud", folder / "ca.crt")


def records(folder):
    return Records(folder / "settings", folder / "state")


def test_token_counts_once_for_its_node(folder, made):
    token = tokens.parse(made.make("b1", 60))
    record = records(folder).token(token.id)[token.id]
    assert tokens.fits(record, token.secret)
    assert (record.names, record.uses, record.replace, record.kind) == (("b1",), 1, True, "")
    assert next((folder / "state/cloud").iterdir()).stat().st_mode & 0o777 == 0o640
    assert [one.id for one in records(folder).all_tokens()] == [token.id]


def test_node_is_starting_while_its_token_counts(made):
    made.make("b1", 60)
    made.make("b2", -1)
    assert made.starting() == {"b1"}
    made.drop(["b1"])
    assert made.starting() == set()


def test_tokens_that_count_no_more_are_removed(folder, made):
    made.make("b2", -1)
    made.drop([])
    assert not [*(folder / "state/cloud").iterdir()]


@pytest.mark.parametrize(
    "changed",
    [
        {"names": ["c1"]},
        {"names": ["b1", "c1"]},
        {"names": ["b1", "b2"]},
        {"names": [], "kind": "compute"},
        {"kind": "compute"},
        {"uses": 20},
        {"id": "000000000000"},
    ],
)
def test_nothing_else_of_that_folder_is_trusted(folder, made, changed):
    token = tokens.parse(made.make("b1", 60))
    path = folder / f"state/cloud/{token.id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    assert records(folder).token(token.id) == {}


def test_link_in_that_folder_is_not_followed(folder):
    _, record = tokens.create("0" * 64, names=["b1"], uses=1, expires=time.time() + 60)
    (folder / "elsewhere.json").write_text(json.dumps(tokens.written(record)))
    (folder / f"state/cloud/{record.id}.json").symlink_to(folder / "elsewhere.json")
    assert records(folder).token(record.id) == {}


def test_without_a_list_of_names_none_counts(folder, made):
    (folder / "settings/cloud.json").unlink()
    token = tokens.parse(made.make("b1", 60))
    assert records(folder).token(token.id) == {}
