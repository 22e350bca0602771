"""The image of a node, made by its playbook: what is in it, and what must not be."""

import json
import tarfile

import pytest

from tests.support.clusters import playbooks

SECRET = (".pem", ".key", "id_rsa", "id_ed25519", "authorized_keys")
# A daemon with a key of its own, one that is disabled, and SSH, which makes host keys when it is installed.
PACKAGES = ["munge", "openssh-server", "python3", "slurmd", "systemd", "systemd-sysv"]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A small one, from the playbook's second run, which must find the first's; a minute."""
    folder = tmp_path_factory.mktemp("image")
    settings = {"cluster_cache_dir": str(folder), "image_layers": False, "image_packages": PACKAGES}
    settings |= {"image_packages_extra": []}
    command = ("ansible-playbook", "playbooks/image.yml", "-e", json.dumps(settings))
    assert playbooks.run("image", *command).rc == 0
    (path,) = (folder / "images").glob("*.tar")
    made = path.stat().st_ino
    again = playbooks.run("image-again", *command)
    assert (again.rc, again.changed) == (0, set())
    # The same file; its times say when it was used last.
    assert path.stat().st_ino == made
    with tarfile.open(path) as archive:
        yield {member.name.removeprefix("./"): member for member in archive.getmembers()}


def test_packages_are_installed(image):
    assert {"usr/sbin/slurmd", "usr/sbin/munged", "usr/sbin/sshd"} <= set(image)


def test_nothing_in_it_is_secret_or_one_hosts(image):
    assert image["etc/machine-id"].size == 0
    assert "var/lib/dbus/machine-id" not in image
    assert not [name for name in image if name.startswith("etc/ssh/ssh_host_")]
    private = ("etc/", "root/", "home/", "var/")
    assert not [name for name in image if name.startswith(private) and name.endswith(SECRET) and image[name].isfile()]


def test_daemons_of_layers_do_not_start(image):
    # Below /var/lib dpkg's helper remembers what it once enabled.
    wanted = {name.rpartition("/")[2] for name in image if name.startswith("etc/systemd/system/") and ".wants/" in name}
    assert not {"munge.service", "slurmd.service"} & wanted
    assert "ssh.service" in wanted
