"""The kubelet's address for supervisors of pods that were there before it: hundreds of folders on a slow home."""

import asyncio
import errno
import os
import threading

import pytest

from isthmus.kubelet.main import _publish_address
from isthmus.kubelet.pods.parts import Address
from isthmus.kubelet.pods.store import Store

UID = "11111111-2222-3333-4444-555555555555"
HERE = Address("10.0.0.1", 10260)


def test_address_that_is_there_is_not_written_again(tmp_path):
    """Each write waits twice for the file server."""
    folder = Store(tmp_path).folder(UID)
    folder.path.mkdir()
    files = []
    for port in (10260, 10260, 10261):
        folder.set_address("10.0.0.1", port)
        files.append((folder.path / "kubelet.json").stat().st_ino)
    assert files[0] == files[1] != files[2]


class Folder:
    """Takes an address when others are being written, too; or fails."""

    def __init__(self, together=None, error=None):
        self.together, self.error, self.has = together, error, None

    def set_address(self, address, port):
        if self.error:
            raise self.error
        if self.together:
            self.together.wait(20)
        self.has = address, port


def test_addresses_are_written_side_by_side():
    together = threading.Barrier(4)
    folders = [Folder(together) for _ in range(40)]
    asyncio.run(_publish_address(folders, HERE))
    assert {folder.has for folder in folders} == {("10.0.0.1", 10260)}


@pytest.mark.parametrize("number", [errno.ESTALE, errno.ENOENT])
def test_folder_that_cannot_be_written_keeps_nothing_from_the_others(number):
    error = OSError(number, os.strerror(number))
    folders = [Folder(), Folder(error=error), *(Folder() for _ in range(10))]
    if number == errno.ENOENT:
        # Its pod went meanwhile.
        asyncio.run(_publish_address(folders, HERE))
    else:
        with pytest.raises(OSError, match="Stale"):
            asyncio.run(_publish_address(folders, HERE))
    assert [folder.has is None for folder in folders] == [False, True, *[False] * 10]
