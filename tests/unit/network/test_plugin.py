"""Whether slurmd has the plugin, told from a /proc of files."""

import pytest

from isthmus.network.plugin import Plugin, state

LIBRARY = "7f00-7f01 r-xp 00000000 08:01 42 /usr/lib/isthmus/isthmus_spank.so\n"
OTHER = "7f02-7f03 r-xp 00000000 08:01 43 /usr/lib/libc.so.6\n"


@pytest.mark.parametrize(
    ("processes", "wanted"),
    [
        ([("slurmd", OTHER + LIBRARY)], Plugin.LOADED),
        ([("slurmd", OTHER)], Plugin.MISSING),
        ([("slurmd", "")], Plugin.MISSING),
        ([("slurmstepd", LIBRARY), ("slurmd", OTHER)], Plugin.MISSING),
        ([("slurmstepd", LIBRARY), ("bash", OTHER)], Plugin.NO_SLURMD),
        ([], Plugin.NO_SLURMD),
    ],
)
def test_plugin_is_what_slurmd_has_in_memory(tmp_path, processes, wanted):
    for number, (name, maps) in enumerate(processes, 10):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "comm").write_text(f"{name}\n")
        (tmp_path / str(number) / "maps").write_text(maps)
    (tmp_path / "self").mkdir()
    (tmp_path / "98").mkdir()
    (tmp_path / "98/comm").write_bytes(b"\xff\n")
    (tmp_path / "99").mkdir()
    assert state(tmp_path) is wanted
