"""The command line of joining: what it needs, how it ends, and what it never prints."""

import json

import pytest

from isthmus.cli import main
from isthmus.cli.node import join as node_join
from isthmus.cli.node import tokens as node_tokens
from isthmus.node.service.records import Records
from isthmus.node.tokens import parse
from tests.support.fakes.join_controller import Controller

TOKEN = f"isthmus1.{'0' * 12}.{'s' * 43}.{'a' * 64}"


@pytest.fixture
def controller(tmp_path, monkeypatch):
    """A controller's files, on which root works."""
    made = Controller(tmp_path / "controller")
    monkeypatch.setattr(node_tokens.os, "geteuid", lambda: 0)
    monkeypatch.setattr(node_tokens, "CA", made.folder / "ca.crt")
    monkeypatch.setattr(node_tokens, "Records", lambda: Records(made.records.settings, made.folder / "var"))
    return made


def reported(capsys, *words):
    status = main.main(["node", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_token_is_shown_once_and_its_secret_never_again(controller, capsys):
    status, out, _ = reported(capsys, "token", "create", "--nodes", "c3,c4")
    token = parse(out)
    assert status == 0
    status, out, _ = reported(capsys, "token", "list", "--json")
    assert token.secret not in out
    (record,) = json.loads(out)["tokens"]
    assert (record["id"], record["used"], record["state"]) == (token.id, "0/2", "valid")
    assert reported(capsys, "token", "revoke", token.id)[0] == 0
    assert json.loads(reported(capsys, "token", "list", "--json")[1])["tokens"] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["create", "--nodes", "c9"], "no compute node c9; add it to the inventory"),
        (["revoke", "0" * 12], "no token 000000000000"),
        (["revoke", "../../etc/passwd"], "no token"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(controller, capsys, words, why):
    status, _, error = reported(capsys, "token", *words)
    assert status == 1
    assert why in error


@pytest.mark.parametrize("words", [["--nodes", "c3", "--ttl", "90d"], ["--nodes", "c3", "--class", "compute"], []])
def test_wrong_usage_ends_with_2(controller, capsys, words):
    with pytest.raises(SystemExit) as ended:
        main.main(["node", "token", "create", *words])
    assert ended.value.code == 2


def test_only_root_joins(monkeypatch, capsys):
    monkeypatch.setattr(node_join.os, "geteuid", lambda: 1000)
    assert reported(capsys, "join", "--token", TOKEN, "--server", "c")[::2] == (
        1,
        "isthmus: only root can make this host a node; use sudo\n",
    )


@pytest.mark.parametrize(
    ("text", "mode", "status", "why"),
    [
        (f"TOKEN={TOKEN}\nSERVER=ctl\n", 0o644, 3, "is open to others"),
        ("COLOUR=blue\n", 0o600, 3, "has COLOUR"),
        ("TOKEN=short\nSERVER=ctl\n", 0o600, 3, "this is no token"),
        (f"TOKEN={TOKEN}\n", 0o600, 1, "the controller is missing"),
    ],
)
def test_file_that_cannot_be_is_refused_and_kept(tmp_path, monkeypatch, capsys, text, mode, status, why):
    monkeypatch.setattr(node_join.os, "geteuid", lambda: 0)
    file = tmp_path / "join"
    file.write_text(text)
    file.chmod(mode)
    ended, _, error = reported(capsys, "join", "--file", str(file))
    assert ended == status
    assert why in error
    assert TOKEN not in error
    assert file.exists()
