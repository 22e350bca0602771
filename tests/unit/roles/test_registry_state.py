"""The module registry_state: what it tells of a host is what is there."""

import pytest

from tests.support import modules


@pytest.fixture
def module(monkeypatch, tmp_path):
    loaded = modules.load("roles/registry/library/registry_state.py")
    monkeypatch.setattr(loaded, "PROGRAMS", (tmp_path / "docker-registry", tmp_path / "skopeo"))
    return loaded


def test_host_with_one_program_has_not_all(module, tmp_path):
    (tmp_path / "skopeo").touch()
    told = modules.run(module, files=[str(tmp_path / "users.htpasswd")])
    assert (told["installed"], told["texts"], told["changed"]) == (False, [""], False)


def test_files_are_read_in_their_order(module, tmp_path):
    for name in ("docker-registry", "skopeo", "one", "two"):
        (tmp_path / name).write_text(name)
    told = modules.run(module, files=[str(tmp_path / "two"), str(tmp_path / "one")])
    assert (told["installed"], told["texts"]) == (True, ["two", "one"])
