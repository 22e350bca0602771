"""Sessions on the login host are in the user's login pod, and all that users do there goes on to work."""

import json
import shlex

import pytest

from tests.support.clusters.sessions import inside, is_pod_there, session, ssh, uid, wait_for_pod
from tests.support.wait import wait

pytestmark = pytest.mark.usefixtures("login_pods")
PORT, FORWARDED = 8888, 18888
SERVE = f"mkdir -p /tmp/site; echo mine > /tmp/site/page; exec python3 -m http.server -b 127.0.0.1 -d /tmp/site {PORT}"
ASK = (
    "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode().strip())'"
    " http://127.0.0.1:{}/page"
)

# Closed here first, so that the port is out of use for a minute, as many of srun's (tcp(7), TIME_WAIT).
CLOSE = """
import socket, sys
for _ in range(400):
    socket.create_connection((sys.argv[1], 6817), 5).close()
"""


@pytest.fixture(scope="module")
def serving(login, user):
    """A session in which a server listens on localhost, as Jupyter does."""
    with session(login, user, SERVE):
        wait(lambda: ssh(login, user, ASK.format(PORT)).rc == 0)
        yield


def test_session_sees_its_own_alone(login, user, serving):
    assert login.output("readlink /proc/1/ns/net") != inside(login, user, "readlink /proc/self/ns/net")
    assert inside(login, user, "ls /sys/class/net").split() == ["eth0", "lo"]
    owners = set(inside(login, user, "stat -c %u /proc/[0-9]*").split())
    assert owners == {"0", uid(login, user)}
    assert "systemd" not in inside(login, user, "cat /proc/[0-9]*/comm")


def test_sessions_share_the_pod_and_nobody_else(login, user, other_user, serving):
    assert inside(login, user, "cat /tmp/site/page; pgrep -c python3").split() == ["mine", "1"]
    assert inside(login, user, ASK.format(PORT)) == "mine"
    assert ssh(login, other_user, ASK.format(PORT)).rc != 0
    assert ssh(login, other_user, "ls /tmp/site").rc != 0
    assert login.run(ASK.format(PORT)).rc != 0
    assert login.run("test -e /tmp/site").rc != 0


@pytest.mark.parametrize("way", ["-L", "-D"])
def test_forwarding_ends_in_the_pods_localhost(login, user, serving, way):
    there = f"-L 127.0.0.1:{FORWARDED}:127.0.0.1:{PORT}" if way == "-L" else f"-D 127.0.0.1:{FORWARDED}"
    ask = ASK.format(FORWARDED)
    if way == "-D":
        command = f"ssh -q -o BatchMode=yes -o ProxyCommand='nc -X 5 -x 127.0.0.1:{FORWARDED} %h %p'"
        ask = f"{command} -V; printf '\\5\\1\\0\\5\\1\\0\\1\\177\\0\\0\\1\\42\\270GET /page HTTP/1.0\\r\\n\\r\\n'"
        ask += f" | timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{FORWARDED}; cat >&3; cat <&3' | tail -1"
    with session(login, user, "sleep 300", there):
        assert wait(lambda: login.try_as(user, ask), lambda done: "mine" in done.stdout)


def test_listener_for_the_client_is_in_the_pod(login, user, other_user):
    """Remote forwarding: what a program in the pod connects to comes out at the client."""
    with session(login, user, "sleep 300", f"-R 127.0.0.1:{FORWARDED}:127.0.0.1:22"):
        banner = f"timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{FORWARDED}; head -c 7 <&3'"
        assert wait(lambda: ssh(login, user, banner).stdout) == "SSH-2.0"
        assert ssh(login, other_user, banner).rc != 0
        assert login.run(banner).rc != 0


def test_files_come_and_go(login, user, serving):
    there = f"{login.name}:/tmp/copied"
    login.run_as(user, f"scp -q -o BatchMode=yes /etc/os-release {there}")
    assert "VERSION" in inside(login, user, "cat /tmp/copied")
    login.run_as(user, f"echo 'put /etc/os-release /tmp/more' | sftp -q -o BatchMode=yes -b - {login.name}")
    assert inside(login, user, "cmp /tmp/copied /tmp/more && echo same") == "same"


def test_agent_is_forwarded_into_the_pod(login, user):
    agent = 'eval $(ssh-agent) >/dev/null; ssh-add -q; ssh -q -A -o BatchMode=yes {} "ssh-add -l; ls $SSH_AUTH_SOCK"'
    shown = login.run_as(user, f"{agent.format(login.name)}; kill $SSH_AGENT_PID")
    assert "SHA256:" in shown


def test_terminal_is_the_users(login, user):
    assert inside(login, user, "tty; stat -c %U $(tty)", "-tt").split() == [inside(login, user, "tty", "-tt"), user]


def test_slurm_starts_and_shows_what_it_is_asked(login, user, computes):
    assert inside(login, user, "timeout 60 srun --mem=20 hostname") in {node.name for node in computes}
    assert "granted" in inside(login, user, "timeout 60 salloc --mem=20 srun --mem=20 true 2>&1 && echo granted")
    assert "/dev/pts" in inside(login, user, "timeout 60 srun --mem=20 --pty tty", "-tt")
    job = inside(login, user, "sbatch --parsable --output=/dev/null --mem=20 --wrap 'sleep 60'")
    assert job in inside(login, user, "squeue --me --noheader --format=%i")
    inside(login, user, f"scancel {job}")


def test_closed_connections_leave_ports_for_srun(login, user, controller):
    inside(login, user, f"python3 -c {shlex.quote(CLOSE)} {controller.name} && timeout 60 srun --mem=20 true")


def test_signals_of_srun_reach_the_step(login, user):
    """Srun in the pod and slurmstepd on the node talk both ways while the step runs."""
    step = "sh -c 'trap \"echo caught; exit 0\" USR1; echo began; while :; do sleep 0.1; done'"
    reported = inside(
        login,
        user,
        f"out=$(mktemp); srun --mem=20 {step} >$out & until grep -q began $out; do sleep 0.1; done;"
        " kill -USR1 $!; wait $!; cat $out; rm $out",
    )
    assert reported.split() == ["began", "caught"]


def test_pod_is_known_by_name_and_to_its_user(login, user, serving):
    shown = json.loads(inside(login, user, "isthmus network list --json"))
    (pod,) = [job for job in shown["jobs"] if job["name"] == "login"]
    assert pod["nodes"] == [login.name]
    assert inside(login, user, "getent ahostsv4 pod0.login").split()[0] == pod["addresses"][0]


def test_pod_ends_with_the_last_session(login, user, other_user):
    left = "setsid nohup sleep 98765 >/dev/null 2>&1 & sleep 300"
    with session(login, other_user, left), session(login, other_user) as second:
        wait_for_pod(login, other_user, there=True)
        login.output(f"systemctl stop {second}")
        wait(lambda: login.run("pgrep -f '^sleep 98765'").rc == 0)
        assert is_pod_there(login, other_user)
    wait_for_pod(login, other_user, there=False)
    assert login.run("pgrep -f '^sleep 98765'").rc != 0
    number = uid(login, other_user)
    wait(
        lambda: (
            f'"uid": {number}'
            not in login.output("isthmus network list --json | tr -d '\\n' | grep -o '\"jobs.*\"users' || true")
        )
    )
    assert login.run(f"test -e /run/isthmus/login/{number}").rc != 0


def test_pod_ends_when_sshd_is_killed(login, other_user):
    with session(login, other_user):
        wait_for_pod(login, other_user, there=True)
        login.output(f"pkill -KILL -f '^sshd-session: {other_user} .priv.'")
        wait_for_pod(login, other_user, there=False)


def test_bounds_hold_for_all_sessions(login, other_user):
    """Of a user's slice of systemd, in which the sessions of a login pod are as any other."""
    if login.run("test -e /sys/fs/cgroup/cgroup.controllers").rc:
        pytest.skip("systemd bounds slices where the host has cgroup v2 alone")
    slice_ = f"user-{uid(login, other_user)}.slice"
    with session(login, other_user):
        wait_for_pod(login, other_user, there=True)
        login.output(f"systemctl set-property --runtime {slice_} MemoryMax=128M TasksMax=40")
        try:
            greedy = ssh(login, other_user, "head -c 300M /dev/zero | tail -c 300M | wc -c")
            assert greedy.stdout.strip() != "314572800"
            many = ssh(login, other_user, "for each in $(seq 60); do sleep 9 & done; wait")
            assert "Resource temporarily unavailable" in many.stderr + many.stdout
        finally:
            login.output(f"systemctl revert {slice_}")


def test_root_stays_on_the_host(login):
    assert login.output("readlink /proc/self/ns/net") == login.output("readlink /proc/1/ns/net")


@pytest.mark.disruptive
def test_sessions_outlive_the_daemon(login, other_user):
    """The pod and the count of its sessions: a second one joins, and the last one ends it."""
    with session(login, other_user):
        wait_for_pod(login, other_user, there=True)
        before = inside(login, other_user, "readlink /proc/self/ns/net")
        login.output("systemctl restart isthmus-networkd")
        assert inside(login, other_user, "readlink /proc/self/ns/net") == before
        assert is_pod_there(login, other_user)
    wait_for_pod(login, other_user, there=False)


@pytest.mark.disruptive
def test_without_the_daemon_users_are_reported_and_admins_let_in(login, user):
    login.output("systemctl stop isthmus-networkd")
    try:
        refused = login.try_as(user, f"ssh -o BatchMode=yes {login.name} id || exit 1")
        assert refused.rc == 1
        assert "isthmus: you cannot log in here now: the network daemon" in refused.stderr
        assert "uid=" not in refused.stdout
        assert login.output("id -u") == "0"
    finally:
        login.output("systemctl start isthmus-networkd")
    wait(lambda: ssh(login, user, "true").rc == 0)
