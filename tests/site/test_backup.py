"""The worst day: etcd goes back to a backup while the daemons of the network run, and so does a lost database."""

import gzip
import hashlib
import re
import shutil
from pathlib import Path

import pytest

from tests.support.clusters import jobs, playbooks
from tests.support.wait import wait

KEPT, LATER = "kept-service", "later-service"
# A limit of the user's that the inventory does not name.
LIMIT = 77
DATABASE = "slurm_acct_db"


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
def accounted(login, controller, user):
    """An ended job, and a limit of its user's; the limit is taken away in the end."""
    job = jobs.submit(login, user, "--mem=10", "true")
    jobs.wait_for_job(controller, job, "COMPLETED")
    controller.output(f"sacctmgr --immediate modify user {user} set MaxSubmitJobs={LIMIT}")
    yield job
    controller.output(f"sacctmgr --immediate modify user {user} set MaxSubmitJobs=-1")
    for name in controller.output(f"mariadb -BNe \"SHOW DATABASES LIKE '{DATABASE}\\_before\\_%'\"").split():
        controller.output(f"mariadb -e 'DROP DATABASE {name}'")
    login.run_as(user, f"rm -f .isthmus-test-{job}.out")


def limits(controller, user):
    shown = controller.run(f"sacctmgr -nP show associations user={user} format=MaxSubmitJobs")
    return set(shown.stdout.split()) if shown.rc == 0 else set()


@pytest.fixture(scope="module")
def backup(reserved, accounted, tmp_path_factory):
    made = tmp_path_factory.mktemp("backups")
    playbooks.succeed("backup", "playbooks/backup.yml", "-e", f"backup_dir={made}")
    (folder,) = made.iterdir()
    return folder


def restore(folder: Path, name: str, log: str):
    return playbooks.play(log, "playbooks/restore.yml", "-e", f"backup_from={folder}", "-e", f"backup_confirm={name}")


def test_backup_is_its_owners_alone(backup):
    assert {path.name for path in backup.iterdir()} == {
        "backup.json",
        "etcd.db",
        "accounting.sql.gz",
        "state.tar.gz",
        "conf.tar.gz",
        "slurm.version",
        "versions.json",
        "SHA256SUMS",
    }
    assert {path.stat().st_mode & 0o077 for path in (backup, *backup.iterdir())} == {0}


def test_changed_backup_is_refused(backup, controller, tmp_path):
    changed = Path(shutil.copytree(backup, tmp_path / "changed"))
    with (changed / "etcd.db").open("ab") as snapshot:
        snapshot.write(b"x")
    refused = restore(changed, controller.variables["name"], "restore_changed")
    assert refused.rc != 0
    assert "no whole backup" in refused.output
    assert not refused.changed


# What is wrong with a dump whose checksum is right, and what the refusal names.
BROKEN = {
    "cut_off": (lambda text: text[: len(text) // 2], "it is cut off"),
    "another": (lambda text: re.sub(rb"INSERT INTO `cluster_table` [^;]*;", b"", text), "it is of another cluster"),
}


@pytest.mark.parametrize("kind", ["cut_off", pytest.param("another", marks=pytest.mark.full)])
def test_accounting_that_cannot_be_restored_is_refused_and_changes_nothing(
    backup, controller, accounted, tmp_path, kind
):
    wrong, named = BROKEN[kind]
    folder = Path(shutil.copytree(backup, tmp_path / kind))
    dump = folder / "accounting.sql.gz"
    dump.write_bytes(gzip.compress(wrong(gzip.decompress(dump.read_bytes()))))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in folder.glob("*[!S]")]
    (folder / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    daemons = "systemctl show --property=MainPID slurmdbd slurmctld isthmus-etcd"
    before = controller.output(daemons)
    refused = restore(folder, controller.variables["name"], f"restore_{kind}")
    assert refused.rc != 0
    assert f"cannot take the place of {DATABASE}: {named}" in refused.output
    assert controller.output(daemons) == before
    assert jobs.state(controller, accounted) == "COMPLETED"
    assert f"{DATABASE}_restored" not in controller.output("mariadb -BNe 'SHOW DATABASES'")


@pytest.fixture
def lost(backup, controller, accounted):
    """The database is lost; slurmdbd has made an empty one."""
    controller.output(f"systemctl stop slurmdbd; mariadb -e 'DROP DATABASE {DATABASE}'; systemctl start slurmdbd")
    wait(lambda: controller.run("sacctmgr --noheader show tres").rc == 0)
    assert jobs.state(controller, accounted).startswith("UNKNOWN")


def test_restored_cluster_knows_what_the_backup_knew(backup, lost, accounted, controller, login, user, two_computes):
    login.run_as(user, f"isthmus network reserve {LATER}")
    assert restore(backup, controller.variables["name"], "restore").rc == 0
    known = reservations(login, user)
    assert KEPT in known
    assert LATER not in known
    assert jobs.state(controller, accounted) == "COMPLETED"
    assert limits(controller, user) == {str(LIMIT)}
    jobs.wait_for_nodes(controller, *(node.name for node in two_computes))
    login.run_as(user, "srun --pod-network --nodes=2 true")
    login.run_as(user, f"isthmus network reserve {LATER}")
    assert LATER in reservations(login, user)
