import pytest

pytestmark = pytest.mark.usefixtures("managed")


def assert_unreadable(node, user, path):
    refused = node.try_as(user, f"cat {path}")
    assert refused.rc != 0
    assert "Permission denied" in refused.stderr


def test_munge_key_is_the_same_everywhere_and_mungers_alone(nodes, user):
    assert len({node.output("sha256sum < /etc/munge/munge.key") for node in nodes.values()}) == 1
    for node in nodes.values():
        assert node.output("stat -c '%a %U' /etc/munge/munge.key") in {"400 munge", "600 munge"}
        assert_unreadable(node, user, "/etc/munge/munge.key")


def test_database_password_is_slurms_alone(controller, user):
    assert controller.output("stat -c '%a %U' /etc/slurm/slurmdbd.conf") == "600 slurm"
    assert_unreadable(controller, user, "/etc/slurm/slurmdbd.conf")


def test_database_is_closed_to_users(controller, user):
    assert controller.try_as(user, "mariadb slurm_acct_db -e 'show tables'").rc != 0
    assert controller.try_as(user, "mariadb -u slurm slurm_acct_db -e 'show tables'").rc != 0


def test_state_of_slurmctld_is_closed_to_users(controller, user, settings):
    assert controller.try_as(user, f"ls {settings['StateSaveLocation']}").rc != 0


def test_password_is_in_no_log_and_no_command_line(controller):
    password = controller.output("sed -n 's/^StoragePass=//p' /etc/slurm/slurmdbd.conf")
    assert len(password) >= 20
    assert controller.run(f"grep -rqF {password} /var/log").rc == 1
    assert controller.run("journalctl --quiet --grep=StoragePass --unit='slurm*' | grep -q StoragePass=").rc == 1


@pytest.fixture
def stranger(controller):
    """A munge daemon with a key of its own; yields its socket."""
    folder = controller.output("mktemp -d /tmp/stranger.XXXXXX")
    controller.output(
        f"chmod 755 {folder} && dd if=/dev/urandom of={folder}/key bs=128 count=1 && chmod 400 {folder}/key"
    )
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = " ".join(f"--{option}={folder}/{name}" for option, name in names.items())
    controller.output(f"munged --force {options}")
    yield f"{folder}/socket"
    controller.run(f"kill $(cat {folder}/pid); rm -rf {folder}")


def test_credential_of_a_wrong_key_is_refused(controller, stranger):
    assert controller.run("munge --no-input | unmunge").rc == 0
    refused = controller.run(f"munge --no-input --socket={stranger} | unmunge")
    assert refused.rc != 0
    assert "Invalid credential" in refused.stdout + refused.stderr


def test_client_with_a_wrong_key_is_refused(controller, stranger):
    conf = f"{stranger}.d"
    controller.output(f"cp -r /etc/slurm {conf} && echo AuthInfo=socket={stranger} >> {conf}/slurm.conf")
    refused = controller.run(f"SLURM_CONF={conf}/slurm.conf timeout 60 squeue")
    assert refused.rc not in {0, 124}
    assert "authentication" in refused.stderr.lower()
    assert controller.run("squeue").rc == 0
