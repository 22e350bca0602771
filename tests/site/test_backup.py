"""The worst day: etcd goes back to a backup while the daemons of the network run."""

import shutil
from pathlib import Path

import pytest

from tests.support import playbooks

KEPT, LATER = "kept-service", "later-service"


def reservations(login, user):
    return login.run_as(user, "isthmus network list")


@pytest.fixture(scope="module")
def reserved(login, user):
    """Reserve `KEPT`; whatever is reserved in the end is given back."""
    login.run_as(user, f"isthmus network reserve {KEPT}")
    yield
    for name in (KEPT, LATER):
        login.run(f"runuser -u {user} -- isthmus network unreserve {name}")


@pytest.fixture(scope="module")
def backup(reserved, tmp_path_factory):
    made = tmp_path_factory.mktemp("backups")
    playbooks.succeed("backup", "playbooks/backup.yml", "-e", f"backup_dir={made}")
    (folder,) = made.iterdir()
    return folder


def restore(folder: Path, name: str, log: str):
    return playbooks.play(log, "playbooks/restore.yml", "-e", f"backup_from={folder}", "-e", f"backup_confirm={name}")


def test_backup_is_its_owners_alone(backup):
    assert {path.name for path in backup.iterdir()} == {"backup.json", "etcd.db", "SHA256SUMS"}
    assert {path.stat().st_mode & 0o077 for path in (backup, *backup.iterdir())} == {0}


def test_changed_backup_is_refused(backup, controller, tmp_path):
    changed = Path(shutil.copytree(backup, tmp_path / "changed"))
    with (changed / "etcd.db").open("ab") as snapshot:
        snapshot.write(b"x")
    refused = restore(changed, controller.variables["name"], "restore_changed")
    assert refused.rc != 0
    assert "no whole backup" in refused.output
    assert not refused.changed


def test_restored_cluster_knows_what_the_backup_knew(backup, controller, login, user, two_computes):
    login.run_as(user, f"isthmus network reserve {LATER}")
    assert restore(backup, controller.variables["name"], "restore").rc == 0
    known = reservations(login, user)
    assert KEPT in known
    assert LATER not in known
    login.run_as(user, "srun --pod-network --nodes=2 true")
    login.run_as(user, f"isthmus network reserve {LATER}")
    assert LATER in reservations(login, user)
