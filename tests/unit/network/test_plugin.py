"""Whether slurmd has the plugin, reported from a /proc of files."""

import os
from pathlib import Path

import pytest

from isthmus.network.node.plugin import ANSWER_S, Plugin, Watcher, state

LIBRARY = b"7f00-7f01 r-xp 00000000 08:01 42 /usr/lib/isthmus/isthmus_spank.so\n"
OTHER = b"7f02-7f03 r-xp 00000000 08:01 43 /usr/lib/libc.so.6\n"
SLURMD = "/opt/slurm/sbin/slurmd"


def process(proc, pid, exe, maps, uids="0\t0\t0\t0"):
    folder = proc / str(pid)
    folder.mkdir()
    os.symlink(exe, folder / "exe")
    (folder / "comm").write_bytes(b"slurmd\n")
    (folder / "status").write_bytes(b"Name:\tslurmd\xff\nUid:\t%s\nGid:\t0\t0\t0\t0\n" % uids.encode())
    (folder / "maps").write_bytes(maps)


@pytest.mark.parametrize(
    ("processes", "wanted"),
    [
        ([(SLURMD, OTHER + LIBRARY)], Plugin.LOADED),
        ([(f"{SLURMD} (deleted)", LIBRARY)], Plugin.LOADED),
        ([(SLURMD, OTHER)], Plugin.MISSING),
        ([(SLURMD, b"")], Plugin.MISSING),
        ([("/opt/slurm/sbin/slurmstepd", LIBRARY), (SLURMD, OTHER)], Plugin.MISSING),
        ([("/opt/slurm/sbin/slurmstepd", LIBRARY), ("/bin/bash", OTHER)], Plugin.NO_SLURMD),
        ([], Plugin.NO_SLURMD),
    ],
)
def test_plugin_is_what_slurmd_has_in_memory(tmp_path, processes, wanted):
    for number, (exe, maps) in enumerate(processes, 10):
        process(tmp_path, number, exe, maps)
    (tmp_path / "self").mkdir()
    (tmp_path / "99").mkdir()
    assert state(Path(SLURMD), tmp_path) is wanted


@pytest.mark.parametrize("uids", ["1002\t1002\t1002\t1002", "1002\t0\t0\t0", "0\t0\t0\t1002"])
@pytest.mark.parametrize("maps", [OTHER, LIBRARY, b"7f00-7f01 /tmp/bob-\xff/slurmd\n"])
@pytest.mark.parametrize("exe", [SLURMD, "/tmp/bobx/slurmd", b"/tmp/bob-\xff/slurmd"])
@pytest.mark.parametrize("roots", [LIBRARY, OTHER])
def test_users_process_changes_nothing(tmp_path, roots, exe, maps, uids):
    process(tmp_path, 10, SLURMD, roots)
    process(tmp_path, 11, exe, maps, uids)
    assert state(Path(SLURMD), tmp_path) is (Plugin.LOADED if roots == LIBRARY else Plugin.MISSING)


def test_roots_process_of_that_name_is_no_slurmd(tmp_path):
    process(tmp_path, 10, "/root/slurmd", LIBRARY)
    assert state(Path(SLURMD), tmp_path) is Plugin.NO_SLURMD


def test_answer_is_good_for_a_while(tmp_path):
    now = [0.0]
    watcher = Watcher(Path(SLURMD), tmp_path, lambda: now[0])
    assert watcher.state() is Plugin.NO_SLURMD
    process(tmp_path, 10, SLURMD, LIBRARY)
    assert watcher.state() is Plugin.NO_SLURMD
    now[0] = ANSWER_S
    assert watcher.state() is Plugin.LOADED


def test_real_proc_is_read():
    assert state(Path("/nonexistent/slurmd")) is Plugin.NO_SLURMD
