"""The module node_program: what is done is done whole, in this order; pip and python are played."""

import stat
import tarfile

import pytest

from tests.support import ansible_modules

PIP = """#!/bin/sh
echo "$@" >> {log}
"""
PROGRAM = "#!/bin/sh\necho 'complete isthmus'\n"


@pytest.fixture
def host(tmp_path):
    """A host with a venv and the archive of a version."""
    folder = tmp_path / "venv/bin"
    folder.mkdir(parents=True)
    for name, text in (("pip", PIP.format(log=tmp_path / "log")), ("isthmus", PROGRAM)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (tmp_path / "isthmus.whl").write_text("wheel")
    for name in ("usr", "completions"):
        (tmp_path / name).mkdir()
    return tmp_path


def install(host, **other):
    with tarfile.open(host / "archive.tar", "w") as archive:
        archive.add(host / "isthmus.whl", "isthmus.whl")
    places = {"link": str(host / "usr/isthmus"), "completion": str(host / "completions/isthmus")}
    asked = {"prefix": str(host / "venv"), "archive": str(host / "archive.tar"), "key": "k1", "lock": "aiohttp==1\n"}
    return ansible_modules.run(ansible_modules.load("roles/base/library/node_program.py"), **asked | places | other)


def pip(host):
    return (host / "log").read_text().splitlines()


def test_first_version_brings_its_dependencies(host):
    assert install(host)["changed"]
    (call,) = pip(host)
    assert "--no-index" in call
    assert "--no-deps" not in call
    assert (host / "venv/lock").read_text() == "aiohttp==1\n"
    assert (host / "venv/wheels/isthmus.whl").read_text() == "wheel"
    assert (host / "usr/isthmus").readlink() == host / "venv/bin/isthmus"
    assert (host / "completions/isthmus").read_text() == "complete isthmus\n"
    assert not (host / "archive.tar").exists()


def test_next_version_of_the_same_lock_brings_itself_alone(host):
    install(host)
    install(host, key="k2")
    assert "--no-deps" in pip(host)[1]
    marks = sorted(path.name for path in (host / "venv/wheels").glob(".installed-*"))
    assert (marks, (host / "venv/program").read_text()) == ([".installed-k2"], "k2\n")
    assert stat.S_IMODE((host / "venv/program").stat().st_mode) == 0o644


def test_half_an_installation_has_no_mark(host):
    install(host)
    (host / "venv/bin/pip").write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    reported = install(host, key="k2", lock="aiohttp==2\n")
    assert (reported["failed"], "no space left" in reported["msg"]) == (True, True)
    assert not [*(host / "venv/wheels").glob(".installed-*")]
    # Other dependencies may be half there: the next run installs all of them.
    assert not (host / "venv/lock").exists()


def test_check_run_changes_nothing(host):
    reported = install(host, _ansible_check_mode=True)
    assert (reported["changed"], (host / "log").exists(), (host / "archive.tar").exists()) == (True, False, True)
