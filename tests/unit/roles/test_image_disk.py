"""The module image_disk: where GRUB's sectors say that the rest of it is."""

import struct

import pytest

from tests.support import ansible_modules


@pytest.fixture(scope="module")
def module():
    return ansible_modules.load("roles/image/library/image_disk.py")


def test_first_sector_goes_on_at_the_core_and_ends_before_the_partition_table(module):
    patched = module.patched_boot(bytes(range(256)) * 2, 2048)
    assert len(patched) == 440
    assert struct.unpack_from("<Q", patched, 0x5C) == (2048,)
    assert patched[:0x5C] == bytes(range(0x5C))
    assert patched[0x64:0x68] == bytes(range(0x64, 0x68))


def test_core_loads_the_rest_from_the_sector_after_its_first(module):
    core = bytes(500) + struct.pack("<QHH", 1, 77, 0x820) + b"rest"
    patched = module.patched_core(core, 2048)
    assert struct.unpack_from("<QHH", patched, 500) == (2049, 77, 0x820)
    assert patched.endswith(b"rest")
    assert len(patched) == len(core)


def test_archive_without_a_kernel_is_refused(module, tmp_path):
    (tmp_path / "node.tar").touch()
    (tmp_path / "node.tar").write_bytes(bytes(10240))
    result = ansible_modules.run(
        module, archive=str(tmp_path / "node.tar"), path=str(tmp_path / "disk.qcow2"), size_mib=64
    )
    assert "has no /vmlinuz; make it with image_format qcow2" in result["msg"]
    assert [path.name for path in tmp_path.iterdir()] == ["node.tar"]
