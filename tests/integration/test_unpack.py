"""Hostile images unpacked by real Apptainer, as an ordinary user: nothing changes outside the scratch folder."""

import shlex
import shutil

import pytest

from tests.support.attacks import hostile_images
from tests.support.servers.apptainer_host import USER

HOME = f"/home/{USER}/prey"
STATE = "cd $0 && find . -printf '%p %y %m %s %T@ %l\\n' | sort && cat existing"
UNPACK = """
import sys
from pathlib import Path
from isthmus.clients import apptainer
apptainer.unpack(Path(sys.argv[1], "oci"), Path(sys.argv[1], "root"))
"""
CONFINED = """
import subprocess, sys
from isthmus.clients import confined
sys.exit(subprocess.run(confined.command(sys.argv[1], ["sh", "-c", sys.argv[2]])).returncode)
"""
# What a program that has gone wrong could try.
ESCAPES = {
    "the home": f"echo x > {HOME}/existing || echo x > ~/new",
    "what lies in the home": f"cat {HOME}/existing",
    "a FIFO in the home": f"echo x > {HOME}/fifo",
    "/tmp": "touch /tmp/escaped",
    "the parent of the scratch folder": "touch ../escaped",
    "another disk": "touch /scratch/escaped",
    "mounts made writable again": "mount -o remount,bind,rw /",
    "the same from yet another namespace": "unshare -Urm mount -o remount,bind,rw /",
    "a cover taken away in yet another namespace": "unshare -Urm umount /home/$(id -un)",
    "the root of another process": f"cat /proc/$(pgrep -o -u $(id -u) sleep)/root{HOME}/existing",
    "the terminal": "echo x > /dev/tty",
    "the network": "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 111), 2)'",
    "root by a setuid program": "su -c true root < /dev/null",
}


@pytest.fixture
def scratch(host):
    """A scratch folder in the host, and a folder of the user's that images are aimed at."""
    host.run("sh", "-c", f"mkdir {HOME} && cd {HOME} && echo mine > existing && mkfifo fifo", user=USER)
    yield host.run("mktemp", "-d", f"{host.shared}/unpack.XXXXXX", user=USER).strip()
    host.run("sh", "-c", f"rm -rf {HOME} {host.shared}/unpack.*")


def outside(host):
    return host.run("sh", "-c", STATE, HOME)


@pytest.mark.parametrize("way", hostile_images.WAYS)
def test_image_changes_nothing_outside(host, scratch, way, tmp_path):
    before = outside(host)
    layout = hostile_images.make(tmp_path / "oci", hostile_images.WAYS[way], HOME)
    copy(host, layout, scratch)
    host.run("python3", "-c", UNPACK, scratch, user=USER, check=False)
    assert outside(host) == before


def test_honest_image_is_unpacked_whatever_the_umask(host, scratch, tmp_path):
    copy(host, hostile_images.make(tmp_path / "oci", hostile_images.HONEST, HOME), scratch)
    host.run("sh", "-c", 'umask 077; exec python3 -c "$0" "$1"', UNPACK, scratch, user=USER)
    found = dict(line.split() for line in host.run("find", f"{scratch}/root", "-printf", "/%P %m\n").splitlines())
    wanted = {"/usr/bin/true": "644", "/.singularity.d/runscript": "755", "/.singularity.d/libs": "755", "/etc": "755"}
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("escape", ESCAPES)
def test_confined_program_reaches_nothing_else(host, scratch, escape):
    before = outside(host)
    script = f"touch here && ! timeout 5 sh -c {shlex.quote(ESCAPES[escape])}"
    host.run("python3", "-c", CONFINED, scratch, script, user=USER)
    assert outside(host) == before
    assert host.run("stat", "-c", "%U", f"{scratch}/here").strip() == USER


def test_without_user_namespaces_nothing_is_unpacked(host, scratch, tmp_path):
    copy(host, hostile_images.make(tmp_path / "oci", hostile_images.HONEST, HOME), scratch)
    # A process that is chrooted may make no user namespace (unshare(2), EPERM).
    script = f'mount --rbind / /mnt && exec chroot --userspec={USER}: /mnt python3 -c "$0" {scratch} 2>&1'
    reported = host.run("unshare", "-m", "sh", "-c", script, UNPACK, check=False)
    assert (
        "images cannot be unpacked safely here: making a user namespace: Operation not permitted; it needs" in reported
    )
    assert host.run("ls", scratch).split() == ["oci"]


def copy(host, layout, scratch):
    """Give the user a layout; the folder is the same in there."""
    shutil.copytree(layout, f"{scratch}/oci")
    host.run("chown", "-R", f"{USER}:", scratch)
