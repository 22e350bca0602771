"""The module registry_digests: what skopeo says of each image; "is not there" is an answer, anything else is none."""

import pytest

from tests.support import ansible_modules

IMAGES = [{"name": "mpi", "tag": "k1"}, {"name": "mpi", "tag": "latest"}]


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Ask with a skopeo that does this; returns the module's result."""
    module = ansible_modules.load("library/registry_digests.py")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def call(script):
        (tmp_path / "skopeo").write_text(f"#!/bin/sh\nfor last; do :; done\n{script}\n")
        (tmp_path / "skopeo").chmod(0o755)
        return ansible_modules.run(module, repository="ctl:5000/isthmus", authfile="/auth.json", images=IMAGES)

    return call


@pytest.mark.parametrize("answer", ["manifest unknown", "name unknown: repository name not known"])
def test_digest_is_empty_where_the_image_is_not_there(ask, answer):
    there = "[ $last = docker://ctl:5000/isthmus/mpi:k1 ] && echo sha256:aa"
    reported = ask(f"{there} && exit; echo '{answer}' >&2; exit 1")
    assert [each["digest"] for each in reported["images"]] == ["sha256:aa", ""]
    assert [(each["name"], each["tag"]) for each in reported["images"]] == [("mpi", "k1"), ("mpi", "latest")]
    assert not reported["changed"]


def test_registry_that_does_not_say_is_an_error(ask):
    reported = ask("echo 'unauthorized: authentication required' >&2; exit 1")
    assert reported["failed"]
    assert reported["msg"] == "docker://ctl:5000/isthmus/mpi:k1: unauthorized: authentication required"


def test_skopeo_is_given_the_credential_and_asked_for_the_digest_alone(ask):
    reported = ask('echo "$@"')
    assert reported["images"][0]["digest"] == (
        "inspect --no-tags --authfile=/auth.json --format={{.Digest}} docker://ctl:5000/isthmus/mpi:k1"
    )
