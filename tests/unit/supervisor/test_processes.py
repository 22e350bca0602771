"""What a fork that enters a container still has of the supervisor; namespaces are not needed for that."""

import ctypes
import json
import os

import pytest

from isthmus.supervisor.runtime import processes
from isthmus.supervisor.runtime.processes import Place, Program
from isthmus.supervisor.volumes import paths

_PR_GET_DUMPABLE = 3


def look():
    """Say whether this process can be looked into, and what it has open beside what looking opens."""
    there = [int(name) for name in os.listdir("/proc/self/fd")]
    still = [number for number in there if os.path.lexists(f"/proc/self/fd/{number}")]
    return {"dumpable": ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE), "open": sorted(still)}


@pytest.fixture
def secret(tmp_path):
    """A descriptor that is nobody else's business."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    yield descriptor
    os.close(descriptor)


def test_function_that_is_called_elsewhere_is_hidden_and_alone(secret):
    pid, results = processes.call(look, Place())
    reported = json.loads(processes.reason(results))["result"]
    os.waitpid(pid, 0)
    assert reported["dumpable"] == 0
    # Its answer is the fourth.
    assert len(reported["open"]) == 4
    assert secret not in reported["open"]


def test_program_is_looked_for_hidden_and_alone(secret, tmp_path, monkeypatch):
    def noting(name, search):
        (tmp_path / "reported").write_text(json.dumps(look()))
        return ["/no/such"]

    monkeypatch.setattr(processes, "candidates", noting)
    with open(os.devnull, "r+") as null:
        pid, reasons = processes.start(Program(["x"]), Place(), (null.fileno(),) * 3)
        assert processes.reason(reasons) == 'exec: "x": No such file or directory'
    reported = json.loads((tmp_path / "reported").read_text())
    assert reported["dumpable"] == 0
    assert len(reported["open"]) == 4
    assert secret not in reported["open"]
    assert pid


@pytest.mark.parametrize(
    ("name", "search", "reported"),
    [
        ("/bin/x", "/none", ["/bin/x"]),
        ("./x", "/none", ["./x"]),
        ("x", "/a:/b", ["/a/x", "/b/x"]),
        ("x", ":/b", ["./x", "/b/x"]),
    ],
)
def test_places_where_a_program_is_looked_for(name, search, reported):
    assert processes.candidates(name, search) == reported


def test_search_path_with_too_many_folders():
    with pytest.raises(OSError, match="PATH has 65 folders, 64 at most; shorten it, or name x in full"):
        processes.candidates("x", ":".join(["/a"] * 65))


@pytest.mark.parametrize("link", ["/proc/self/root", "../..", "/", "a/../../b"])
def test_path_that_leads_out_of_a_folder(tmp_path, link):
    (tmp_path / "a").mkdir()
    (tmp_path / "out").symlink_to(link)
    folder = os.open(tmp_path, os.O_PATH)
    with pytest.raises(OSError, match="openat2"):
        paths.opened(folder, "out/x", paths.linux.BENEATH, 0o755)
    os.close(folder)


def test_missing_folders_are_made_as_open_as_they_shall_be(tmp_path):
    folder = os.open(tmp_path, os.O_PATH)
    made = paths.opened(folder, "a//b/./c", paths.linux.BENEATH, 0o777)
    assert os.path.samestat(os.fstat(made), (tmp_path / "a/b/c").stat())
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o777
    os.close(made)
    os.close(folder)
