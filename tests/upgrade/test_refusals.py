"""What an upgrade refuses, on a live cluster: each before any daemon stops, and each with its remedy."""

import json
import os
from pathlib import Path

import pytest

from tests.support.clusters import playbooks, upgrades
from tests.support.clusters.upgrades import upgrade

REFUSED = {
    "back": ({"slurm_version": "23.11"}, "newer than slurm_version 23.11, and Slurm cannot go back"),
    "pmix": ({"slurm_version": "25.11", "slurm_mpi_default": "pmix"}, "no plugin mpi/pmix"),
    "no_such_release": ({"slurm_version": "24.12"}, "24.12 is none of the releases"),
    "no_such_package": (
        {"slurm_version": "25.05", "slurm_package_source": "release"},
        "no source of this host has Slurm",
    ),
}
PACKAGES = "/var/lib/isthmus/slurm/packages"


@pytest.fixture
def before(controller):
    """The controller's daemons; the same ones must run at the end."""
    found = upgrades.daemons(controller)
    yield found
    assert upgrades.daemons(controller) == found


def assert_refused(log, message, **variables):
    refused = upgrade(f"upgrade_refused_{log}", **variables)
    assert refused.rc != 0
    assert message in upgrades.words(refused.output)


@pytest.mark.parametrize("case", REFUSED)
def test_version_that_cannot_be_reached(before, case):
    variables, message = REFUSED[case]
    assert_refused(case, message, **variables)


@pytest.fixture
def unreadable(controller, before):
    """The user of slurmdbd is refused by MariaDB, as with another password."""
    controller.output('mariadb --execute="ALTER USER slurm@localhost ACCOUNT LOCK"')
    yield
    controller.output('mariadb --execute="ALTER USER slurm@localhost ACCOUNT UNLOCK"')


def test_database_that_cannot_be_read(unreadable):
    assert_refused("unreadable", "the accounting database on ctl cannot be read; look at `slurmdbd -u`")


@pytest.fixture
def full(controller, before):
    """Where the dump goes there is a file system of 100 MiB."""
    folder = "/var/lib/isthmus/slurm/before"
    controller.output(f"mkdir -p {folder} && mount -t tmpfs -o size=100M,mode=0700 isthmus-test {folder}")
    yield
    controller.output(f"umount {folder} && rmdir {folder}")


def test_no_room_for_the_dump(full):
    assert_refused("room", "MiB left, and 200 are needed for the dump; make room")


@pytest.fixture
def dropped(computes, before):
    """A node whose old packages no mirror has, as it asks for another component of it, and which has kept none.

    Its lists are gone, too, as in an image that was made small.
    """
    node = computes[0]
    aside = "/var/tmp/isthmus-test-aside"
    moved = "/var/lib/apt/lists /etc/apt/sources.list /etc/apt/sources.list.d"
    node.output(f"mkdir {aside}; mv {moved} {aside}; mkdir -p /etc/apt/sources.list.d")
    node.output(f"sed 's/ main$/ contrib/' {aside}/sources.list > /etc/apt/sources.list")
    node.output(f"mv {PACKAGES} {aside} 2>/dev/null || true; rm -f /var/cache/apt/archives/slurm*.deb")
    yield
    node.output(f"rm -rf {moved} {PACKAGES}")
    node.output(f"mv {aside}/lists /var/lib/apt/; mv {aside}/sources.list {aside}/sources.list.d /etc/apt/")
    node.output(f"mv {aside}/packages {PACKAGES} 2>/dev/null || true; rmdir {aside}")


def test_mirrors_without_the_old_packages(dropped, computes):
    refused = upgrade("upgrade_refused_mirrors")
    assert refused.rc != 0
    assert refused.recap[computes[0].name]["failed"]
    assert "which this host has, cannot be fetched for the way back" in upgrades.words(refused.output)


@pytest.fixture
def another(controller, before):
    """A process, this one, that holds the file of an upgrade."""
    file = Path(controller.variables["state_dir"], "upgrade/running")
    file.parent.mkdir(exist_ok=True)
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    file.write_text(f"{os.getpid()} {began}\n")
    yield
    file.unlink()


def test_second_upgrade_at_the_same_time(another):
    assert_refused("second", "another upgrade of")


def test_backup_of_another_cluster(controller, before):
    made = playbooks.succeed("upgrade_other_backup", "playbooks/backup.yml")
    assert made.rc == 0
    folder = max(Path(controller.variables["state_dir"], "backups").iterdir())
    about = folder / "backup.json"
    kept = about.read_text()
    about.write_text(json.dumps(json.loads(kept) | {"id": "0" * 8, "name": "another"}))
    sums = folder / "SHA256SUMS"
    sums_kept = sums.read_text()
    sums.write_text("".join(line for line in sums_kept.splitlines(keepends=True) if "backup.json" not in line))
    confirmed = ["-e", f"backup_from={folder}", "-e", f"backup_confirm={controller.variables['name']}"]
    try:
        refused = playbooks.play("upgrade_refused_backup", "playbooks/restore.yml", *confirmed)
    finally:
        about.write_text(kept)
        sums.write_text(sums_kept)
    assert refused.rc != 0
    assert "is of cluster another" in upgrades.words(refused.output)
