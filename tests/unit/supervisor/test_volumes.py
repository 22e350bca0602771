"""Files of volumes on a disk; what containers see of them is in tests/integration/test_supervisor_volumes.py."""

import errno
import os

import pytest

from isthmus.podproto.plan import File, Volume
from isthmus.supervisor.volumes import fsgroup
from isthmus.supervisor.volumes.kind import VolumeError
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


def test_volume_of_a_home_that_is_stale_says_which(tmp_path, monkeypatch):
    def stale(*_, **more):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(tmp_path))

    monkeypatch.setattr(fsgroup, "give", stale)
    with pytest.raises(VolumeError, match=r"volume claim: .*Stale file handle"):
        make(Folders(tmp_path), [Volume("claim", "host", path=str(tmp_path), gid=5)])
