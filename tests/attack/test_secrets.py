"""Secrets of the cluster in what an ordinary user reads, and the daemons that hold some."""

from __future__ import annotations

import base64
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.attacks.commands import tried

PLACES = "/etc /opt /run /srv /usr/local /var/backups /var/cache /var/lib /var/log /var/spool /var/tmp /tmp"
# Files of the deployer's folder that everybody may know.
PUBLIC = {".crt", ".pub", ".id"}
PUBLIC_NAMES = {"config", "known_hosts"}
# As root, in the files that the user may read; larger ones are programs. Prints their number, and those with a secret.
SCAN = """
umask 077
patterns=$(mktemp /run/isthmus-attack.XXXXXX)
trap 'rm -f "$patterns"' EXIT
cat > "$patterns"
own=$(getent passwd USER | cut -d: -f6)
su USER -s /bin/sh -c 'find PLACES -xdev -type f -size -4M -readable -print0 2>/dev/null' > "$patterns.files"
tr -cd '\\0' < "$patterns.files" | wc -c
xargs -0 -a "$patterns.files" -r grep -laF -f "$patterns" -- 2>/dev/null | grep -v "^$own/" || true
rm -f "$patterns.files"
"""
DAEMONS = {
    "MariaDB as itself": "mariadb -e 'show databases' | grep slurm",
    "MariaDB as slurm": "mariadb -u slurm slurm_acct_db -e 'show tables'",
    "MariaDB as root": "mariadb -u root -e 'show databases'",
    "etcd's clients": "python3 -c KNOCK CTL 2379",
    "etcd's peers": "python3 -c KNOCK CTL 2380",
    "sudo": "sudo -n id",
    "systemctl stop": "systemctl --no-ask-password stop slurmctld",
    "systemctl start": "systemctl --no-ask-password start isthmus-registry-gc",
    "busctl": "busctl --no-ask-password call org.freedesktop.systemd1 /org/freedesktop/systemd1"
    " org.freedesktop.systemd1.Manager KillUnit ssi slurmctld.service main 15",
    "journal": "journalctl --quiet --unit=slurmctld | grep .",
    "kernel's log": "dmesg | grep .",
    "state of slurmctld": "ls $(scontrol show config | awk '/^StateSaveLocation/{print $3}') | grep .",
    "data of etcd": "ls /var/lib/etcd/* | grep .",
    "key of tokens": "cat /var/lib/isthmus-tokend/token.key",
    "accounts of the registry": "cat /etc/isthmus/tokend.json",
    "images of others": "ls /var/lib/docker-registry/docker | grep .",
    "socket of isthmus-tokend": "curl -s --unix-socket /run/isthmus-tokend/socket http://tokend/room",
    "socket of docker-registry": "ls /run/isthmus-registry | grep .",
    "memory of slurmctld": "head -c 1 /proc/$(pgrep -o slurmctld)/environ | grep .",
}
KNOCK = """
import json, socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
link = context.wrap_socket(socket.create_connection((sys.argv[1], int(sys.argv[2])), 5))
link.sendall(b"POST /v3/kv/range HTTP/1.1\\r\\nHost: etcd\\r\\nContent-Length: 15\\r\\n\\r\\n" + b'{"key": "AA=="}')
answer = link.recv(1000)
sys.exit(0 if answer else 1)
"""


def secrets(folder: Path) -> list[bytes]:
    """Return what nobody else may read: the words of passwords, the inner lines of keys."""
    found: set[bytes] = set()
    files = [path for path in folder.rglob("*") if path.is_file()]
    public = [path for path in files if path.suffix in PUBLIC or path.name in PUBLIC_NAMES]
    for path in set(files) - set(public):
        text = path.read_bytes()
        if text.isascii():
            found.update(line for line in text.splitlines() if len(line) >= 20 and b"PRIVATE KEY" not in line)
        else:
            # A binary key may have any byte; what lies between line ends and NULs is still enough to know it by.
            found.update(part for part in re.split(rb"[\n\0]", text) if len(part) >= 8)
            found.add(base64.b64encode(text)[:40])
    # A private key ends with the public one (RFC 5915), of which a line may be one of its certificate, too.
    return sorted(found - {line for path in public for line in path.read_bytes().splitlines()})


def fed(node, command, text):
    """Run a command as root that reads bytes, which no list of processes shows; return what it prints."""
    given = node.variables
    key = ["-i", given["key"]] if given["key"] else []
    there = f"{given['user']}@{given['address']}"
    become = "sudo -n " if given["become"] else ""
    words = ["ssh", "-p", str(given["port"]), *key, *shlex.split(given["options"]), there]
    script = f"{become}bash -c {shlex.quote(command)}"
    done = subprocess.run([*words, script], input=text, capture_output=True, check=True, timeout=120)
    return done.stdout.decode(errors="replace").splitlines()


@pytest.fixture(scope="module")
def patterns(controller):
    """The cluster's secrets, a line each; never shown."""
    found = secrets(Path(controller.variables["state_dir"]))
    assert len(found) >= 10
    return b"\n".join(found) + b"\n"


def scanned(node, user, patterns, places=PLACES):
    count, *hits = fed(node, SCAN.replace("USER", user).replace("PLACES", places), patterns)
    return int(count), hits


@pytest.mark.attack("host")
@pytest.mark.parametrize("part", ["controller", "login", "compute"])
def test_no_file_that_a_user_reads_holds_a_secret(cluster, attacker, patterns, part):
    """Every file that a user may read, searched for every secret of the deployer's."""
    if not cluster.part(part):
        pytest.skip(f"the site has no {part} node")
    count, hits = scanned(cluster.part(part)[0], attacker, patterns)
    assert count > 100
    assert hits == []


@pytest.mark.attack("host")
def test_search_finds_a_secret_that_lies_open(controller, attacker, patterns):
    """The search itself: a password laid open is found."""
    lines = patterns.splitlines()
    try:
        fed(controller, "cat > /var/tmp/isthmus-attack-open; chmod 644 /var/tmp/isthmus-attack-open", lines[0])
        assert scanned(controller, attacker, patterns, "/var/tmp")[1] == ["/var/tmp/isthmus-attack-open"]
    finally:
        controller.output("rm -f /var/tmp/isthmus-attack-open")


@pytest.fixture(scope="module")
def asked(controller, attacker):
    """What the controller's daemons answer the attacker."""
    words = {"KNOCK": shlex.quote(KNOCK), "CTL": controller.variables["base_address"]}
    ways = dict(DAEMONS)
    for word, value in words.items():
        ways = {name: command.replace(word, value) for name, command in ways.items()}
    before = controller.output("systemctl show --property=MainPID slurmctld")
    found = tried(controller, attacker, ways)
    assert controller.output("systemctl show --property=MainPID slurmctld") == before
    return found


@pytest.mark.attack("host")
@pytest.mark.parametrize("way", DAEMONS)
def test_daemons_of_the_controller_answer_no_user(asked, way):
    """Database, etcd, systemd, logs and state of the controller, as an ordinary user on it."""
    assert not asked[way].worked, asked[way].said
