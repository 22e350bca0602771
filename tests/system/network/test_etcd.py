"""etcd as admins and ordinary users find it: well, and closed to everybody else."""

import pytest

from tests.support.clusters.cluster import Node

SECRETS = "/etc/isthmus/etcd/secrets"
KNOCK = """\
import socket, ssl
connection = socket.create_connection(("{address}", 2379), 10)
ssl.create_default_context().wrap_socket(connection, server_hostname="{address}").recv(1)
"""


@pytest.fixture(scope="module")
def members(nodes) -> list[Node]:
    """Every host of group etcd."""
    return [node for node in nodes.values() if "etcd" in node.variables["groups"]]


@pytest.fixture(scope="module")
def member(members) -> Node:
    return members[0]


def etcdctl(member, words):
    """Run etcdctl with a member's certificate and no password; the right one is all that lacks."""
    flags = "--endpoints=https://127.0.0.1:2379 --cacert=/etc/isthmus/ca.crt"
    pair = "--cert=/etc/isthmus/tls/etcd.crt --key=/etc/isthmus/tls/etcd.key"
    return member.run(f"/usr/local/lib/isthmus/etcdctl {flags} {pair} {words}")


def test_every_member_is_well(member, members):
    done = member.run("isthmus-etcdctl endpoint health --cluster")
    assert done.rc == 0, done.stderr
    assert done.stdout.count("is healthy") == len(members)


def test_nobody_gets_in_without_a_certificate(login, user, member):
    done = login.try_as(user, f"python3 -c '{KNOCK.format(address=member.variables['base_address'])}'")
    assert done.rc != 0
    assert "certificate required" in done.stderr.replace("_", " ").lower()


@pytest.mark.parametrize(
    ("login", "refusal"), [("", "permission denied"), ("--user=root:wrong", "authentication failed")]
)
def test_nobody_gets_in_without_the_password(member, login, refusal):
    done = etcdctl(member, f"{login} get /")
    assert done.rc != 0
    assert refusal in done.stderr


@pytest.mark.parametrize("path", [f"{SECRETS}/root.password", f"{SECRETS}/token.key", "/etc/isthmus/tls/etcd.key"])
def test_ordinary_user_reads_no_secret(member, user, path):
    assert member.run(f"test -s {path}").rc == 0
    assert member.run(f"runuser -u {user} -- cat {path}").rc != 0


@pytest.mark.parametrize("path", ["/var/lib/etcd", "/var/backups/etcd"])
def test_ordinary_user_sees_no_data(member, user, path):
    assert member.run(f"runuser -u {user} -- ls {path}").rc != 0


def test_daemon_may_write_below_its_prefix_alone(member):
    done = etcdctl(member, f'--user=networkd:"$(cat {SECRETS}/networkd.password)" put /isthmus/elsewhere x')
    assert done.rc != 0
    assert "permission denied" in done.stderr


def test_snapshot_is_taken_and_whole(member):
    before = set(member.run("ls /var/backups/etcd").stdout.split())
    assert member.run("systemctl start isthmus-etcd-snapshot").rc == 0
    (new,) = set(member.run("ls /var/backups/etcd").stdout.split()) - before
    assert member.run(f"/usr/local/lib/isthmus/etcdutl snapshot status /var/backups/etcd/{new}").rc == 0
    member.run(f"rm /var/backups/etcd/{new}")


def test_space_is_given_back_by_one_member(members):
    assert [node.run("systemctl is-active isthmus-etcd-defrag.timer").rc for node in members].count(0) == 1
    assert all(node.run("systemctl is-active isthmus-etcd-snapshot.timer").rc == 0 for node in members)


def test_metrics_are_on_the_loopback_alone(member):
    listening = member.run("ss --listening --tcp --numeric --no-header 'sport = 2381'").stdout.split()
    assert "127.0.0.1:2381" in listening
    assert not [word for word in listening if word.endswith(":2381") and not word.startswith("127.")]
