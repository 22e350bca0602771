"""`isthmus images mirror`, as a user types it."""

import json

import pytest

from isthmus.cli.main import main
from isthmus.images import mirrors


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    """The drop-in of a user on a site that has a mirror of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(mirrors, "SITE", tmp_path / "site")
    mirrors.write(tmp_path / "site", {"docker.io": ["hub.example"], "quay.io": ["quay.example"]})
    return mirrors.of_user(tmp_path) / "isthmus.conf"


def test_add_and_show(path, capsys):
    assert main(["images", "mirror", "docker.io/library", "ctl:5000/isthmus", "other:5000"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "docker.io -> hub.example (the site's)",
        "docker.io/library -> ctl:5000/isthmus, other:5000 (yours)",
        "quay.io -> quay.example (the site's)",
    ]
    assert main(["images", "mirror", "quay.io", "ctl:5000", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["own"] == {"docker.io/library": ["ctl:5000/isthmus", "other:5000"], "quay.io": ["ctl:5000"]}
    assert mirrors.read(path.parent) == reported["own"]


def test_the_users_hides_the_sites(capsys):
    assert main(["images", "mirror", "quay.io", "ctl:5000"]) == 0
    assert "quay.io -> ctl:5000 (yours)" in capsys.readouterr().out.splitlines()


def test_remove(path, capsys):
    main(["images", "mirror", "quay.io", "ctl:5000"])
    assert main(["images", "mirror", "quay.io", "--remove"]) == 0
    assert not path.exists()
    assert main(["images", "mirror", "quay.io", "--remove"]) == 1
    assert "you have no mirrors of quay.io" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["quay.io"], "has no mirror"),
        (["quay.io", "a.example", "--remove"], "has both"),
        (["quay.io", "https://a.example"], "'https://a.example' is no registry"),
        (["quay.io", 'a"\nlocation="b'], "is no registry"),
    ],
)
def test_nothing_changes_for_what_cannot_be(path, capsys, words, why):
    main(["images", "mirror", "docker.io", "ctl:5000"])
    before = path.read_text()
    assert main(["images", "mirror", *words]) == 1
    assert why in capsys.readouterr().err
    assert path.read_text() == before


@pytest.mark.parametrize("content", ["[[registry", "registry = 3", "[[registry]]\n[[registry.mirror]]\n"])
def test_a_file_of_another_form_is_left(path, capsys, content):
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert main(["images", "mirror", "quay.io", "ctl:5000"]) == 1
    assert f"{path} is no list of mirrors" in capsys.readouterr().err
    assert path.read_text() == content
