"""The user's way in: where kubectl finds it by itself, and what of the user's stays as it is."""

import os
import stat

import pytest
import yaml

from isthmus.cli.commands import up as command
from isthmus.controlplane.commands.up import Up
from isthmus.controlplane.pki import kubeconfig

WORK = {
    "clusters": [{"name": "work", "cluster": {"server": "https://work"}}],
    "users": [{"name": "work", "user": {"token": "x"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "work"}}],
    "current-context": "work",
}


def written(path, server="https://10.64.0.2:6443"):
    path.write_text(kubeconfig.of_program("admin", server))
    return path


@pytest.fixture
def own(tmp_path):
    return written(tmp_path / "own")


@pytest.fixture
def usual(tmp_path):
    return tmp_path / ".kube/config"


@pytest.fixture
def theirs(usual):
    """The user's, with a comment, which a program that wrote it again would lose."""
    usual.parent.mkdir()
    usual.write_text(f"# mine\n{yaml.safe_dump(WORK)}")
    return usual


def server(path):
    return {each["name"]: each["cluster"]["server"] for each in yaml.safe_load(path.read_text())["clusters"]}


def test_one_is_made_where_there_is_none(usual, own):
    assert kubeconfig.offer(usual, own)
    assert yaml.safe_load(usual.read_text()) == yaml.safe_load(own.read_text())
    assert [stat.S_IMODE(path.stat().st_mode) for path in (usual.parent, usual)] == [0o700, 0o600]
    assert os.listdir(usual.parent) == ["config"]


def test_users_own_stays_as_it_is(theirs, own):
    before = theirs.read_bytes()
    assert not kubeconfig.offer(theirs, own)
    kubeconfig.refresh(theirs, own)
    assert not kubeconfig.withdraw(theirs)
    assert theirs.read_bytes() == before


@pytest.mark.parametrize("kind", ["link to nothing", "pipe", "folder", "text", "list", "empty", "binary"])
def test_whatever_else_is_there_stays(usual, own, kind):
    usual.parent.mkdir()
    texts = {"text": b"a: [", "list": b"[1]", "empty": b"", "binary": b"\xff\xfe"}
    match kind:
        case "link to nothing":
            usual.symlink_to("nowhere")
        case "pipe":
            os.mkfifo(usual)
        case "folder":
            usual.mkdir()
        case _:
            usual.write_bytes(texts[kind])
    before = usual.lstat()
    assert not kubeconfig.offer(usual, own)
    assert not kubeconfig.withdraw(usual)
    assert (usual.lstat().st_ino, usual.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_home_that_cannot_be_written_is_no_error(usual, own):
    usual.parent.write_text("no folder")
    assert not kubeconfig.offer(usual, own)


def test_entries_follow_keys_and_server_and_the_rest_stays(theirs, own):
    kubeconfig.merge(theirs, own)
    changed = yaml.safe_load(theirs.read_text())
    changed["contexts"][1]["context"]["namespace"] = "mine"
    theirs.write_text(yaml.safe_dump(changed))
    written(own, "https://10.64.0.9:6443")
    assert kubeconfig.offer(theirs, own)
    assert server(theirs) == {"work": "https://work", "isthmus": "https://10.64.0.9:6443"}
    assert yaml.safe_load(theirs.read_text())["contexts"] == changed["contexts"]


def test_choice_of_another_context_is_the_users(theirs, own):
    kubeconfig.merge(theirs, own)
    theirs.write_text(theirs.read_text().replace("current-context: isthmus", "current-context: work"))
    written(own, "https://10.64.0.9:6443")
    assert not kubeconfig.offer(theirs, own)
    assert server(theirs)["isthmus"] == "https://10.64.0.9:6443"


def test_link_stays_one(usual, own, tmp_path):
    usual.parent.mkdir()
    elsewhere = written(tmp_path / "elsewhere", "https://10.64.0.1:6443")
    usual.symlink_to(elsewhere)
    assert kubeconfig.offer(usual, own)
    assert server(elsewhere) == server(own)
    assert not kubeconfig.withdraw(usual)
    assert (usual.is_symlink(), server(elsewhere)) == (True, {})


def test_what_was_made_is_gone_with_the_cluster(usual, own):
    kubeconfig.offer(usual, own)
    assert kubeconfig.withdraw(usual)
    assert not usual.exists()
    assert not kubeconfig.withdraw(usual)


def test_what_was_merged_is_taken_out_with_the_cluster(theirs, own):
    kubeconfig.merge(theirs, own)
    assert not kubeconfig.withdraw(theirs)
    left = yaml.safe_load(theirs.read_text())
    assert {kind: left[kind] for kind in WORK} == WORK | {"current-context": ""}


@pytest.mark.parametrize(
    ("given", "is_found", "words"),
    [
        (None, True, []),
        (None, False, ["--merge", "export KUBECONFIG=/own"]),
        ("", False, ["--merge", "export KUBECONFIG=/own"]),
        ("/other", True, ["export KUBECONFIG=/own"]),
        ("/other:/own", False, []),
    ],
)
def test_up_prints_what_kubectl_needs(monkeypatch, given, is_found, words):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    if given is not None:
        monkeypatch.setenv("KUBECONFIG", given)
    printed = command._words(Up(1, "7", "https://10.64.0.2:6443", "/own", True, 3.0, (), is_found=is_found))
    lines = printed.splitlines()[1:]
    assert len(lines) == len(words)
    assert all(word in line for word, line in zip(words, lines, strict=True))
