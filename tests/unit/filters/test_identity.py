"""Nobody rekeys a live cluster by mistake, and nodes notice a new version."""

import json

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.trust import identity

ONE, OTHER = json.dumps({"schema": 1, "id": "one"}), json.dumps({"schema": 1, "id": "other"})


@pytest.mark.parametrize(
    ("on_nodes", "on_deployer"),
    [([], ""), (["", ""], ""), (["", ""], "one"), ([ONE, ""], "one\n"), ([ONE, ONE], "one")],
)
def test_identity_lets_the_owner_go_on(on_nodes, on_deployer):
    assert identity.base_identity_problems(on_nodes, on_deployer, "/state/cluster.id") == []


@pytest.mark.parametrize(
    ("on_nodes", "on_deployer", "words"),
    [
        (["", ONE], "", "secrets are not here (/state/cluster.id); run playbooks/adopt_secrets.yml"),
        ([ONE], "other", "another cluster than /state/cluster.id"),
        ([ONE, OTHER], "one", "another cluster than /state/cluster.id"),
    ],
)
def test_identity_refuses_with_the_remedy(on_nodes, on_deployer, words):
    (problem,) = identity.base_identity_problems(on_nodes, on_deployer, "/state/cluster.id")
    assert words in problem
    assert "adopt_secrets.yml" in problem


NAMED = json.dumps({"schema": 1, "name": "prod", "id": "one"})


def test_id_belongs_to_one_cluster():
    assert identity.base_identity_problems([NAMED], "one", "/state/cluster.id", "prod") == []
    (problem,) = identity.base_identity_problems(["", NAMED], "one", "/state/cluster.id", "test")
    assert "belongs to cluster prod, which has the id that /state/cluster.id gives to test too" in problem
    assert "set NAME to prod" in problem


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([ONE, "key", "DbdHost=ctl\nStoragePass=secret\n"], ["one", "key", "secret"]),
        ([ONE, "key", "#StoragePass=old\n"], ["one", "key"]),
        ([ONE, "", ""], ["one"]),
    ],
)
def test_live_secrets_are_those_the_controller_has(files, expected):
    assert [secret["content"] for secret in identity.base_live_secrets(files)] == expected


@pytest.fixture
def project(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks/runtime.txt").write_text("rich==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "LICENSE").write_text("Do as you like.\n")
    (tmp_path / "src/isthmus").mkdir(parents=True)
    (tmp_path / "src/isthmus/main.py").write_text("print()\n")
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        "locks/runtime.txt",
        "pyproject.toml",
        "LICENSE",
        "src/isthmus/main.py",
        "src/isthmus/new.py",
        "src/isthmus/object.yaml",
    ],
)
def test_program_key_follows_every_part(project, changed):
    before = identity.base_program_key(str(project))
    assert identity.base_program_key(str(project)) == before
    (project / changed).write_text("changed\n")
    assert identity.base_program_key(str(project)) != before


def test_program_key_stays_when_python_compiles(project):
    before = identity.base_program_key(str(project))
    (project / "src/isthmus/__pycache__").mkdir()
    (project / "src/isthmus/__pycache__/main.cpython-311.pyc").write_bytes(b"")
    assert identity.base_program_key(str(project)) == before


def test_program_key_needs_the_lock_file(tmp_path):
    with pytest.raises(InputError, match=r"runtime\.txt is missing; restore it"):
        identity.base_program_key(str(tmp_path))


@pytest.mark.parametrize(("mode", "closed"), [(0o700, True), (0o750, False)])
def test_folder_is_closed_where_its_owner_alone_enters(tmp_path, mode, closed):
    tmp_path.chmod(mode)
    assert identity.base_folder_is_closed(str(tmp_path)) is closed
    assert not identity.base_folder_is_closed(str(tmp_path / "none"))
