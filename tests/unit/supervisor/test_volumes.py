"""Files of volumes on a disk; what containers see of them is in tests/integration/test_supervisor_volumes.py."""

import os

from isthmus.podproto.plan import File, Volume
from isthmus.supervisor.volumes.mounts import Folders, make


def test_folders_within_a_volume_let_everyone_pass(tmp_path):
    config = Volume("config", "files", files=(File("a/b/c", 0o644, b""),))
    folders = Folders(tmp_path)
    folders.memory.mkdir()
    folders.staging.mkdir()
    before = os.umask(0o077)
    try:
        make(folders, [config])
    finally:
        os.umask(before)
    found = folders.volume(config)
    assert [(found / path).stat().st_mode & 0o777 for path in ("a", "a/b", "a/b/c")] == [0o755, 0o755, 0o644]
