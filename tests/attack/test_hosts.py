"""The nodes themselves: what a user may write there, see of others, and leave behind."""

from __future__ import annotations

import shlex

import pytest

from tests.support.attacks.commands import tried
from tests.support.wait import wait

# Where root looks for programs, settings and units; everybody's places are known.
ROOTS = "/bin /boot /etc /lib /opt /root /run /sbin /srv /usr /var"
COMMON = {"/run/lock", "/run/screen", "/run/sshd", "/var/crash", "/var/lock", "/var/tmp", "/var/spool/samba"}
# What slurmd keeps of a user's own jobs is the user's.
FIND = rf"""
find {ROOTS} -xdev \( -type f -o -type d \) -writable ! -path '/run/user/*' ! -path '/var/tmp/*' ! -path "$HOME/*" \
  ! \( -path '*/slurmd/*' -user "$USER" \) 2>/dev/null
"""
# Programs that try to go on when their job is over; each sleeps under a name of its own.
SLEEP = "exec -a isthmus-attack-WAY sleep 600"
OUTLIVE = {
    "session": f"setsid --fork bash -c '{SLEEP}'",
    "background": f"nohup bash -c '{SLEEP}' >/dev/null 2>&1 &",
    "orphan": f"( ( bash -c '{SLEEP}' & ) & )",
    "namespaces": f"unshare --user --map-root-user --mount --net bash -c '{SLEEP}' &",
    "control group": f"(echo $BASHPID > /sys/fs/cgroup/cgroup.procs; bash -c '{SLEEP}') &",
    "systemd": f"systemd-run --user --quiet bash -c '{SLEEP}'",
    "lingering": f"loginctl --no-ask-password enable-linger; systemd-run --user bash -c '{SLEEP}'",
    "at": f'echo "bash -c \\"{SLEEP}\\"" | at now',
    "cron": f'echo "* * * * * bash -c \\"{SLEEP}\\"" | crontab -',
}


def asleep(node, user):
    """Return pid -> name of the programs that were started here."""
    lines = node.output(f"pgrep --uid {user} --full --list-full '^isthmus-attack-' || true").splitlines()
    return dict(line.split()[:2] for line in lines)


@pytest.fixture(scope="module")
def left(login, computes, attacker):
    """The programs of a job that still run when it is over."""
    node = computes[0]
    lines = [command.replace("WAY", str(number)) for number, command in enumerate(OUTLIVE.values())]
    # Without their output, so that srun waits for none of them.
    script = "\n".join(["exec 3>&1 >/dev/null 2>&1", *lines, "sleep 0.5; ps -u $USER -o args= >&3"])
    reported = login.run_as(attacker, f"srun --mem=50 --nodelist={node.name} bash -c {shlex.quote(script)}")
    assert "isthmus-attack-0" in reported
    try:
        wait(lambda: login.run_as(attacker, "squeue --me --noheader --name=bash") == "", timeout_s=60)
        yield set(asleep(node, attacker).values())
    finally:
        for pid in asleep(node, attacker):
            node.run(f"kill {pid}")


@pytest.mark.attack("host")
@pytest.mark.parametrize("part", ["controller", "login", "compute"])
def test_user_writes_nothing_that_root_uses(cluster, attacker, part):
    """Files and folders of the system that everybody, or a user, may write."""
    if not cluster.part(part):
        pytest.skip(f"the site has no {part} node")
    found = cluster.part(part)[0].try_as(attacker, FIND).stdout.splitlines()
    assert sorted(set(found) - COMMON) == []


@pytest.mark.attack("host")
@pytest.mark.parametrize("way", OUTLIVE)
def test_nothing_outlives_its_job(left, way):
    """Programs that hide from the end of their job: sessions, namespaces, timers, lingering."""
    assert f"isthmus-attack-{[*OUTLIVE].index(way)}" not in left


@pytest.mark.attack("host")
def test_nobody_stays_when_the_user_has_gone(computes, attacker):
    """Lingering: a user's own manager on a compute node without a job."""
    found = tried(computes[0], attacker, {"linger": "loginctl --no-ask-password enable-linger"})
    assert not found["linger"].worked
    assert computes[0].run(f"test -e /var/lib/systemd/linger/{attacker}").rc != 0
