"""The module `image_disk`: a disk that boots (qcow2) from the archive of a root file system with a kernel.

No loop device and no mount: a file is partitioned, mke2fs fills its file system from a folder, mtools that of the EFI
partition, and GRUB is put in its place by hand, as `grub-bios-setup` does where it has a device. It starts by BIOS and
by EFI. GRUB takes kernel and initrd by the links in /, which Debian keeps at the newest: no kernel update touches it.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ansible.module_utils.basic import AnsibleModule

SECTOR = 512
MIB = 1 << 20
# Starts and ends in MiB; the root is last, so that growpart can make it as large as the disk.
BIOS_MIB, EFI_MIB, ROOT_MIB = 1, 2, 34
LAST_MIB = 1  # the second partition table
LABEL = "isthmus-root"
TABLE = f"""label: gpt
start={BIOS_MIB}MiB, size={EFI_MIB - BIOS_MIB}MiB, type=21686148-6449-6E6F-744E-656564454649
start={EFI_MIB}MiB, size={ROOT_MIB - EFI_MIB}MiB, type=uefi
start={ROOT_MIB}MiB, size={{root}}MiB, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709
"""
EMBEDDED = f"search.fs_label {LABEL} root\nset prefix=($root)/boot/grub\nnormal ($root)/boot/grub/grub.cfg\n"
GRUB_CFG = f"""set timeout=0
linux /vmlinuz root=LABEL={LABEL} ro console=tty0 console=ttyS0,115200
initrd /initrd.img
boot
"""
FSTAB = f"LABEL={LABEL} / ext4 errors=remount-ro 0 1\n"
MODULES = ["part_gpt", "ext2", "search_label", "normal", "linux", "boot", "echo", "test", "ls", "reboot"]
# What GRUB 2.06 cannot read, and newer mke2fs makes.
FEATURES = "^metadata_csum_seed,^orphan_file"
# Places that GRUB's own installer writes to: the sector of core.img in boot.img, and of the rest of it in core.img.
BOOT_CODE, BOOT_SECTOR, CORE_REST = 440, 0x5C, 0x1F4


def patched_boot(boot: bytes, sector: int) -> bytes:
    """GRUB's first sector, up to the partition table, that goes on at this sector of the disk."""
    return boot[:BOOT_SECTOR] + struct.pack("<Q", sector) + boot[BOOT_SECTOR + 8 : BOOT_CODE]


def patched_core(core: bytes, sector: int) -> bytes:
    """GRUB's core, whose first sector loads the rest of it from the sector after its own."""
    return core[:CORE_REST] + struct.pack("<Q", sector + 1) + core[CORE_REST + 8 :]


class Maker:
    """Makes one disk in a folder of its own."""

    def __init__(self, module: AnsibleModule, folder: Path) -> None:
        self.module, self.folder = module, folder
        self.disk, self.root = folder / "disk.raw", folder / "root"

    def run(self, *argv: str | Path, **options: Any) -> None:
        """Run a command that must succeed."""
        self.module.run_command([str(word) for word in argv], check_rc=True, **options)

    def write(self, content: bytes, place: int) -> None:
        """Overwrite a part of the disk."""
        with self.disk.open("r+b") as disk:
            disk.seek(place)
            disk.write(content)

    def unpack(self, tar: str) -> None:
        """Lay the root file system out, with what only a disk has."""
        self.root.mkdir()
        self.run("tar", "--extract", "--numeric-owner", "--xattrs", "--xattrs-include=*", "-f", tar, "-C", self.root)
        for link in ("vmlinuz", "initrd.img"):
            if not (self.root / link).is_symlink():
                self.module.fail_json(msg=f"{tar} has no /{link}; make it with image_format qcow2, which adds a kernel")
        (self.root / "boot/grub").mkdir(exist_ok=True)
        (self.root / "boot/grub/grub.cfg").write_text(GRUB_CFG)
        (self.root / "etc/fstab").write_text(FSTAB)

    def partition(self, size_mib: int) -> None:
        """Make the disk with its partitions, and fill the last."""
        root_mib = size_mib - ROOT_MIB - LAST_MIB
        with self.disk.open("wb") as disk:
            disk.truncate(size_mib * MIB)
        self.run("sfdisk", "--quiet", "--no-reread", self.disk, data=TABLE.format(root=root_mib))
        self.run(
            *("mke2fs", "-q", "-t", "ext4", "-F", "-L", LABEL, "-O", FEATURES, "-d", self.root),
            *("-E", f"offset={ROOT_MIB * MIB},root_owner=0:0", self.disk, f"{root_mib}M"),
        )

    def boot(self) -> None:
        """Put GRUB where a BIOS and where an EFI look for it."""
        config, core, efi = self.folder / "grub.cfg", self.folder / "core.img", self.folder / "BOOTX64.EFI"
        config.write_text(EMBEDDED)
        shape = ["-c", config, "-p", "/boot/grub"]
        self.run("grub-mkimage", "-O", "i386-pc", "-o", core, *shape, "biosdisk", *MODULES)
        self.run("grub-mkimage", "-O", "x86_64-efi", "-o", efi, *shape, "fat", *MODULES)
        sector = BIOS_MIB * MIB // SECTOR
        self.write(patched_boot(Path("/usr/lib/grub/i386-pc/boot.img").read_bytes(), sector), 0)
        self.write(patched_core(core.read_bytes(), sector), BIOS_MIB * MIB)
        part = self.folder / "efi.fat"
        with part.open("wb") as file:
            file.truncate((ROOT_MIB - EFI_MIB) * MIB)
        self.run("mkfs.vfat", "-n", "EFI", part)
        self.run("mmd", "-i", part, "::/EFI", "::/EFI/BOOT")
        self.run("mcopy", "-i", part, efi, "::/EFI/BOOT/BOOTX64.EFI")
        self.write(part.read_bytes(), EFI_MIB * MIB)

    def keep(self, path: Path) -> None:
        """Give the disk its name only when it is whole."""
        packed = self.folder / "disk.qcow2"
        self.run(
            *("qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", "-o", "compression_type=zstd"),
            *(self.disk, packed),
        )
        packed.rename(path)


def main() -> None:
    """Make the disk where it is not there."""
    options = {
        "archive": {"type": "path", "required": True},
        "path": {"type": "path", "required": True},
        "size_mib": {"type": "int", "required": True},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    path = Path(module.params["path"])
    if path.exists() or module.check_mode:
        module.exit_json(changed=not path.exists())
    with TemporaryDirectory(dir=path.parent, prefix="disk.") as folder:
        maker = Maker(module, Path(folder))
        maker.unpack(module.params["archive"])
        maker.partition(module.params["size_mib"])
        maker.boot()
        maker.keep(path)
        shutil.rmtree(maker.root)
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
