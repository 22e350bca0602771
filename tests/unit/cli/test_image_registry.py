"""`isthmus images access` and `isthmus images list --registry`, as a user types them."""

import json

import pytest

from isthmus.cli.main import main
from isthmus.clients import registry
from isthmus.model.registry import PRIVATE, Access, Overview, Readers, Repository

BOB = Access(Readers.USERS, frozenset({"bob", "carol"}))
DIGEST = "sha256:" + "1f" * 32
OVERVIEW = Overview(
    "alice",
    3 << 20,
    20 << 30,
    (
        Repository("alice/deep/er", PRIVATE, {}, (DIGEST,)),
        Repository("alice/tool", BOB, {"1": DIGEST, "latest": DIGEST}),
    ),
    ("bob/shared",),
)


@pytest.fixture(autouse=True)
def said(tmp_path, monkeypatch):
    """What the registry is sent; it is alice's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".apptainer").mkdir()
    auths = {"auths": {"ctl:5000": {"auth": "YWxpY2U6c2VjcmV0"}}}
    (tmp_path / ".apptainer/docker-config.json").write_text(json.dumps(auths))
    (tmp_path / "images.json").write_text(json.dumps({"schema": 1, "registry": "ctl:5000", "images": {}}))
    reported = []
    monkeypatch.setattr(registry.login, "__defaults__", (tmp_path / "images.json",))
    monkeypatch.setattr(registry, "overview", lambda login: OVERVIEW)
    monkeypatch.setattr(registry, "set_access", lambda login, name, access: reported.append((name, access)))
    return reported


@pytest.mark.parametrize(
    "name", ["tool", "alice/tool", "ctl:5000/alice/tool", "tool:1", "docker://ctl:5000/alice/tool:1"]
)
@pytest.mark.parametrize(
    ("option", "access"),
    [
        (["--private"], PRIVATE),
        (["--site"], Access(Readers.SITE)),
        (["--users", "bob,carol"], BOB),
    ],
)
def test_access_is_reported_to_the_registry(said, capsys, name, option, access):
    assert main(["images", "access", name, *option]) == 0
    assert said == [("alice/tool", access)]
    assert capsys.readouterr().out == f"ctl:5000/alice/tool: {access.words()}\n"


def test_access_is_shown(said, capsys):
    assert main(["images", "access"]) == 0
    assert capsys.readouterr().out == "ctl:5000/alice/deep/er: private\nctl:5000/alice/tool: bob, carol\n"
    assert main(["images", "access", "new", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["repositories"]
    assert one == {"name": "alice/new", "access": {"readers": "private", "users": []}}
    assert not said


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--site"], 2),
        (["tool", "--users", ","], 2),
        (["tool", "--users", "bob", "--site"], 2),
        (["To ol", "--site"], 1),
        (["../bob", "--site"], 1),
    ],
)
def test_wrong_words_report_the_registry_nothing(said, words, status):
    try:
        assert main(["images", "access", *words]) == status
    except SystemExit as ended:
        assert ended.code == status
    assert not said


def test_list_shows_what_is_there_and_the_room_it_takes(capsys):
    assert main(["images", "list", "--registry"]) == 0
    out = capsys.readouterr().out
    assert "alice/tool:latest" in out and "bob, carol" in out and "shared with you" in out
    assert "3 MiB of 20.0 GiB used" in out


def test_list_for_scripts(capsys):
    assert main(["images", "list", "--registry", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["schema"], reported["used_bytes"], reported["shared"]) == (1, 3 << 20, ["bob/shared"])
    assert reported["repositories"][0]["untagged"] == [DIGEST]


def test_user_without_a_credential_is_reported_what_to_do(tmp_path, capsys):
    (tmp_path / ".apptainer/docker-config.json").write_text("{}")
    assert main(["images", "list", "--registry"]) == 1
    assert "has no credential for ctl:5000; the site's playbook writes one" in capsys.readouterr().err
