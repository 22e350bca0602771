"""What another user of the login host listens to, runs and keeps there, from a host process and from a login pod."""

import shlex

import pytest

from tests.support.clusters.sessions import inside, is_pod_there, session, ssh, uid
from tests.support.wait import wait

pytestmark = pytest.mark.attack("S18")
PORT = 8899
SERVE = f"""
import os, socket, time
os.umask(0)
tcp = socket.create_server(("0.0.0.0", {PORT})); low = socket.create_server(("127.0.0.1", {PORT + 1}))
high = socket.create_server(("0.0.0.0", int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])))
udp = socket.socket(type=socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 5353))
names = []
for name in ("\\0victims-abstract", "/tmp/victims.sock", "/var/tmp/victims.sock", "/dev/shm/victims.sock"):
    names.append(socket.socket(socket.AF_UNIX)); names[-1].bind(name); names[-1].listen()
open("/tmp/victims-secret", "w").write("secret")
time.sleep(600)
"""
TCP = "timeout 2 bash -c 'exec 3<>/dev/tcp/{}/{}'"
UNIX = 'python3 -c "import socket; socket.socket(socket.AF_UNIX).connect({!r})"'
WAYS = {
    "localhost": TCP.format("127.0.0.1", PORT + 1),
    "every-address-at-localhost": TCP.format("127.0.0.1", PORT),
    "every-address-at-the-host": TCP.format("HOST", PORT),
    "port-of-the-pod-at-the-host": TCP.format("HOST", "HIGH"),
    "address-of-the-pod": TCP.format("ADDRESS", PORT),
    "srun's-port-at-the-pod": TCP.format("ADDRESS", "HIGH"),
    "abstract-socket": UNIX.format("\0victims-abstract"),
    "socket-in-tmp": UNIX.format("/tmp/victims.sock"),
    "socket-in-var-tmp": UNIX.format("/var/tmp/victims.sock"),
    "socket-in-shm": UNIX.format("/dev/shm/victims.sock"),
    "file-in-tmp": "cat /tmp/victims-secret",
    "by-proc": "cat /proc/PID/root/tmp/victims-secret",
    "environment": "cat /proc/PID/environ",
    "descriptors": "ls /proc/PID/fd/",
    "memory": "dd if=/proc/PID/mem of=/dev/null count=1",
    "trace": "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, PID, 0, 0))'",
    "signal": "kill -0 PID",
    "namespace-by-process": "nsenter -n -t PID true",
    "namespace-by-name": "for each in /run/netns/isthmus-*; do nsenter --net=$each true && exit; done; exit 1",
    "folder-of-the-pod": "ls /run/isthmus/login/VICTIM",
    "root's-socket": UNIX.format("/run/isthmus/networkd-root.sock"),
    "end-the-pod": "systemctl --no-ask-password stop isthmus-login@VICTIM",
    "end-its-first-process": "kill -KILL $(cat /run/isthmus/login/VICTIM/init)",
}
OWN = {
    "end-the-first-process": "kill -KILL 1",
    "trace-it": "cat /proc/1/environ",
    "leave-by-its-namespaces": "nsenter -t 1 -a true",
    "mount": "mount -t tmpfs x /mnt",
    "other-ports": "echo 1024 65000 > /proc/sys/net/ipv4/ip_local_port_range",
    "another-address": "ip address add 10.64.0.99/32 dev eth0",
    "systemd-of-one's-own": "systemd-run --user --wait true",
    "a-session-by-the-daemon": (
        'python3 -c \'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect("/run/isthmus/networkd.sock");'
        ' s.sendall(b"{\\"version\\":1,\\"op\\":\\"login_enter\\",\\"uid\\":VICTIM,\\"pid\\":2}\\n");'
        ' sys.exit(b"forbidden" in s.recv(4096))\''
    ),
}
# What one may write before a key of one's own.
OPTIONS = 'tunnel="0",environment="LD_PRELOAD=/tmp/x.so",environment="BASH_ENV=/bin/false",permitlisten="*:*"'


@pytest.fixture(scope="module", autouse=True)
def login_pods(login):
    if login.run("grep -q 'pam_isthmus.so login' /etc/pam.d/sshd").rc:
        pytest.skip("the site has no login pods")


@pytest.fixture(scope="module", params=["second attacks third", "third attacks second"])
def sides(request, login, attacker, victim):
    """(attacker, victim, what the ways' words stand for): the victim's session listens everywhere."""
    one, other = (attacker, victim) if request.param.startswith("second") else (victim, attacker)
    # What the attacker listened to as the other's victim ends with their pod.
    wait(lambda: not is_pod_there(login, one))
    with session(login, other, f"python3 -c {shlex.quote(SERVE)}"):
        wait(lambda: ssh(login, other, "test -e /tmp/victims-secret").rc == 0)
        pid = login.output(f"pgrep -u {other} -f victims-abstract | tail -1")
        address = inside(login, other, "ip -4 -o address show dev eth0").split()[3].partition("/")[0]
        high = inside(login, other, "cut -f1 /proc/sys/net/ipv4/ip_local_port_range")
        host = login.variables["base_address"]
        yield one, other, {"PID": pid, "ADDRESS": address, "HIGH": high, "HOST": host, "VICTIM": uid(login, other)}


def script(words):
    """Return a script that tries all ways and prints the names of those that lead somewhere."""
    lines = []
    for name, command in WAYS.items():
        for word, value in words.items():
            command = command.replace(word, value)
        lines.append(f"( {command} ) > /dev/null 2>&1 < /dev/null && echo {shlex.quote(name)}")
    return "\n".join([*lines, "echo tried"])


@pytest.fixture(scope="module")
def reached(login, sides):
    """Where from -> the ways that lead somewhere."""
    one, other, words = sides
    return {
        "host": login.try_as(one, script(words)).stdout.split(),
        "pod": ssh(login, one, script(words)).stdout.split(),
        "own": ssh(login, other, script(words)).stdout.split(),
    }


def test_ways_are_ways(reached):
    """Reach what is one's own in one's own pod."""
    ways = {"localhost", "every-address-at-localhost", "abstract-socket", "file-in-tmp", "address-of-the-pod"}
    assert ways | {name for name in WAYS if name.startswith("socket-in-")} <= set(reached["own"])


@pytest.mark.parametrize("way", WAYS)
def test_another_users_session_from_the_host(reached, way):
    """Reach what is in another's login pod, as a process of one's own on the login host."""
    assert "tried" in reached["host"]
    assert way not in reached["host"]


@pytest.mark.parametrize("way", WAYS)
def test_another_users_session_from_a_login_pod(reached, way):
    """Reach what is in another's login pod, from one's own."""
    assert "tried" in reached["pod"]
    assert way not in reached["pod"]


def test_pod_after_all_that(login, sides, reached):
    """End another's login pod by any of these ways."""
    assert is_pod_there(login, sides[1])


@pytest.mark.parametrize("option", ["", "--pod-network"])
def test_another_users_session_from_a_compute_node(login, sides, option):
    """Reach a login pod at its host's ports as a job on a compute node, in the node's network and in a pod."""
    one, _, words = sides
    step = f"timeout 100 srun --mem=20 {option} sh -c {shlex.quote(script(words))}"
    assert login.try_as(one, step).stdout.split() == ["tried"]


@pytest.mark.parametrize("way", OWN)
def test_ones_own_pod(login, attacker, victim, way):
    """Get out of one's own login pod, or more rights in it."""
    tried = ssh(login, attacker, f"({OWN[way].replace('VICTIM', uid(login, victim))}) && echo reached")
    assert "reached" not in tried.stdout


@pytest.mark.parametrize("way", ["environment", "forced", "options", "rc", "no-pty-no-command", "locale"])
def test_ways_of_sshd_around_the_pod(login, attacker, way):
    """Have sshd start something of one's own outside of the pod."""
    show = "readlink /proc/self/ns/net > ~/where"
    begin = {
        "environment": "echo 'BASH_ENV=/bin/false' > ~/.ssh/environment",
        "forced": f"cd .ssh; cp authorized_keys keys; sed -i 's|^|command=\"{show}\" |' authorized_keys; cd",
        "options": f"cd .ssh; cp authorized_keys keys; sed -i 's|^|{OPTIONS} |' authorized_keys; cd",
        "rc": f"echo '{show}' > ~/.ssh/rc",
        "locale": "export LC_ALL=../../../../tmp/x LANG=$(printf '%0999d' 7)",
    }.get(way, "true")
    end = "cd ~/.ssh; rm -f rc environment; test -e keys && mv keys authorized_keys; cd; cat where; rm -f where"
    options = "-T" if way == "no-pty-no-command" else "-o SendEnv=LC_ALL -o SendEnv=LANG"
    run = f"ssh -q -o BatchMode=yes {options} {login.name} {shlex.quote(show) if way != 'no-pty-no-command' else ''}"
    done = login.try_as(attacker, f"{begin}; echo '{show}' | {run} > /dev/null; {end}")
    assert done.stdout.strip().startswith("net:["), done.stdout + done.stderr
    assert done.stdout.strip() != login.output("readlink /proc/1/ns/net")
