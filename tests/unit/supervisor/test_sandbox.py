"""Which process keeps a container open, reported from a /proc of files."""

import pytest

from isthmus.supervisor.runtime import sandbox, tree


@pytest.fixture
def process(tmp_path):
    """Lay a process down: its command, and the children of each of its threads; None: the thread has just ended."""

    def lay(pid, command, **threads):
        for name, children in threads.items():
            folder = tmp_path / str(pid) / "task" / name.removeprefix("t")
            folder.mkdir(parents=True)
            if children is not None:
                (folder / "children").write_text(children)
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        (tmp_path / str(pid) / "cmdline").write_bytes(command.encode() + b"\0")

    return lay


# In whichever order threads are listed, one of the two is listed before the other.
@pytest.mark.parametrize("threads", [{"t1": None, "t2": "22"}, {"t1": "22", "t2": None}], ids=["first", "second"])
def test_pause_is_found_whichever_thread_of_apptainer_ends(tmp_path, process, threads):
    process(20, "apptainer", **threads)
    process(22, "starter", t22="30")
    process(30, sandbox.PAUSE)
    assert tree.running(20, sandbox.PAUSE, tmp_path) == 30


def test_container_without_pause_has_ended(tmp_path, process):
    process(20, "apptainer", t20="21", t25=None)
    assert tree.running(20, sandbox.PAUSE, tmp_path) is None
