"""What stands before the programs that serve roots: the words they get, and who serves when the kernel refuses."""

import shutil
import subprocess

import pytest

from isthmus.supervisor.volumes import mounts

OPTIONS = "allow_other,lowerdir=/l:/r,upperdir=/u/*,workdir=/w,noacl"
STUB = '#!/bin/sh\nprintf "%s\\n" {name} "$@" >>{said}\nexit {status}\n'


@pytest.fixture
def shields(tmp_path, monkeypatch):
    """Return a function that runs a shield before stubs of all programs, and returns which of them ran with what."""
    reported = tmp_path / "said"
    real = shutil.which

    def which(name):
        return str(tmp_path / "bin" / name) if (tmp_path / "bin" / name).exists() else None

    def run(name, *words, kernel=True, without=()):
        (tmp_path / "bin").mkdir()
        for program in {"fuse-overlayfs", "squashfuse_ll", "mount", "findmnt"} - {*without}:
            stub = tmp_path / "bin" / program
            status = 0 if kernel or program != "mount" else 32
            stub.write_text(STUB.format(name=program, said=reported, status=status))
            stub.chmod(0o755)
        monkeypatch.setattr(mounts.shutil, "which", which)
        (tmp_path / "roots").mkdir()
        mounts._shield(tmp_path / "shields", tmp_path / "roots")
        monkeypatch.setattr(mounts.shutil, "which", real)
        subprocess.run([tmp_path / "shields" / name, *words], check=True, cwd=tmp_path)
        return reported.read_text().splitlines()

    return run


@pytest.fixture
def attributes(monkeypatch):
    """A file system that keeps attributes, whatever the tests run on."""
    monkeypatch.setattr(mounts.os, "setxattr", lambda *_: None)
    monkeypatch.setattr(mounts.os, "removexattr", lambda *_: None)


def test_kernel_gets_the_layers_alone(shields, attributes):
    layers = "userxattr,lowerdir=/l:/r,upperdir=/u/*,workdir=/w"
    mounted = ["mount", "--no-mtab", "--types", "overlay", "--options", layers, "overlay", "/final"]
    watched = ["findmnt", "--poll=umount", "--first-only", "--noheadings", "--mountpoint", "/final"]
    # findmnt's own words go nowhere: the stub writes to a file.
    assert shields("fuse-overlayfs", "-f", "-o", OPTIONS, "/final") == [*mounted, *watched]


def test_fuse_serves_where_the_kernel_refuses(shields, attributes):
    reported = shields("fuse-overlayfs", "-f", "-o", OPTIONS, "/final", kernel=False)
    assert reported[-5:] == ["fuse-overlayfs", "-f", "-o", OPTIONS, "/final"]


@pytest.mark.parametrize("program", ["mount", "findmnt"])
def test_fuse_serves_where_a_program_is_missing(shields, attributes, program):
    reported = shields("fuse-overlayfs", "-f", "-o", OPTIONS, "/final", without=[program])
    assert reported == ["fuse-overlayfs", "-f", "-o", OPTIONS, "/final"]


def test_fuse_serves_where_attributes_cannot_be_kept(shields, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(mounts.os, "setxattr", refuse)
    assert shields("fuse-overlayfs", "-f", "-o", OPTIONS, "/final")[0] == "fuse-overlayfs"


def test_owners_of_an_image_are_the_images(shields, attributes):
    reported = shields("squashfuse_ll", "-f", "-o", "allow_other,ro,uid=0,gid=0", "/image", "/rootfs")
    wanted = "allow_other,ro,default_permissions,suid"
    assert reported == ["squashfuse_ll", "-f", "-o", wanted, "/image", "/rootfs"]
