"""Nodes ask a real service over TLS; manifest and commands of the host are made up, its files are below a folder."""

import base64
import http.client
import json
import os
import socket
import ssl
from hashlib import sha256

import pytest
from cryptography import x509

from isthmus.node import certificates
from isthmus.node.errors import JoinError, RefusedError
from isthmus.node.files import Tree
from isthmus.node.host import Host
from isthmus.node.joining import Joining, Kept
from isthmus.node.manifest import Field
from isthmus.node.remote import Controller as Remote
from isthmus.node.service.doors import Bounds
from tests.support.fakes.join_controller import MANIFEST, Commands, Controller

MUNGE = "the key of munge"
FILES = [
    {"path": "/etc/isthmus", "state": "directory"},
    {"path": "/etc/isthmus/network.json", "content": f"@isthmus.{Field.NAME}@ @isthmus.{Field.ADDRESS}@\n"},
    {"path": "/etc/munge/munge.key", "base64": base64.b64encode(MUNGE.encode()).decode(), "mode": "0400"},
    {"path": "/etc/chrony/a", "content": "", "when": "machine"},
    {"path": "/etc/tmpfiles.d/a.conf", "content": "d /run/a"},
]
UNITS = [{"name": "isthmus-networkd", "files": ["/etc/isthmus/network.json"]}]


@pytest.fixture
def controller(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(os.urandom(3 << 20))
    same = [{"path": str(program), "mode": "0755"}, {"path": "/nothing/here", "mode": "0644", "optional": True}]
    with Controller(tmp_path / "controller", files=FILES, units=UNITS, same=same) as running:
        yield running


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path / "node")


class Node:
    """A host of the image, below a folder."""

    def __init__(self, root):
        self.root, self.commands = root, Commands(**{"systemd-tmpfiles": "", "update-ca-certificates": ""})
        (root / "opt/isthmus").mkdir(parents=True)
        (root / "opt/isthmus/program").write_text(MANIFEST["release"] + "\n")

    def join(self, controller, token, name="c3", check=False, pin=None):
        pin = pin or certificates.pin(controller.ca.certificate)
        host = Host(Tree(self.root), self.commands)
        joining = Joining(host, Remote(controller.server, pin), lambda _: None, check=check)
        return joining.run(name, token, Kept(controller.server, name, pin, False))

    def files(self):
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}


def test_node_joins_and_a_second_join_changes_nothing(controller, node):
    token = controller.token()
    assert node.join(controller, token).changed
    assert (node.root / "etc/isthmus/network.json").read_text() == "c3 127.0.0.1\n"
    assert (node.root / "etc/munge/munge.key").stat().st_mode & 0o777 == 0o400
    assert not (node.root / "etc/chrony").exists()
    program = controller.folder.parent / "program"
    assert (node.root / str(program)[1:]).read_bytes() == program.read_bytes()
    assert "systemd-tmpfiles --create /etc/tmpfiles.d/a.conf" in node.commands.ran
    assert "systemctl start isthmus-networkd" in node.commands.ran
    assert not node.join(controller, token).changed
    controller.now += 3600
    assert not node.join(controller, None).changed


def test_certificate_is_of_the_nodes_own_key_and_its_authority(controller, node):
    node.join(controller, controller.token())
    key, crt = (node.root / f"etc/isthmus/tls/networkd.{end}" for end in ("key", "crt"))
    issuer = x509.load_pem_x509_certificate((controller.folder / "etc/nodes.crt").read_bytes())
    x509.load_pem_x509_certificate(crt.read_bytes()).verify_directly_issued_by(issuer)
    assert certificates.is_kept(crt.read_bytes(), key.read_bytes(), 300)
    assert key.stat().st_mode & 0o777 == 0o600


def test_check_reports_and_changes_nothing(controller, node):
    before = node.files()
    reported = node.join(controller, controller.token(), check=True)
    assert "/etc/munge/munge.key" in reported.changes
    assert node.files() == before
    assert controller.records.joined() == ({}, {})


REFUSED = {
    "another machine": ({"joined": True}, {}, "another machine has joined as c3"),
    "name unknown": ({"names": ["c9"]}, {"name": "c9"}, "no compute node c9"),
    "name not the token's": ({}, {"name": "c4"}, "the token is not for c4"),
    "old": ({"expires": 1.0}, {}, "has expired"),
    "release": ({"manifest": {"release": "f" * 16}}, {}, "make the image"),
    "package": ({"manifest": {"packages": {"slurmd": "25"}}}, {}, r"slurmd 24.11 \(the cluster 25\)"),
    "package lacks": ({"manifest": {"packages": {"apptainer": ""}}}, {}, "lacks apptainer"),
    "address": ({"names": ["c4"]}, {"name": "c4"}, "c4 has 192.0.2.4 in the inventory"),
    "another cluster's CA": ({}, {"pin": "0" * 64}, "belongs to another cluster than the token"),
    "another cluster's node": ({"identity": '{"id": "other"}'}, {}, "belongs to another cluster than dev"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_node_is_as_it_was(controller, node, tmp_path, case):
    given, asked, words = REFUSED[case]
    token = controller.token(**{name: value for name, value in given.items() if name in ("names", "expires")})
    controller.publish(files=FILES, **given.get("manifest", {}))
    if "joined" in given:
        Node(tmp_path / "first").join(controller, controller.token())
    if "identity" in given:
        (node.root / "etc/isthmus").mkdir(parents=True)
        (node.root / "etc/isthmus/cluster.json").write_text(given["identity"])
    before, joined = node.files(), controller.records.joined()
    with pytest.raises(RefusedError, match=words):
        node.join(controller, token, **asked)
    assert node.files() == before
    assert controller.records.joined() == joined


def test_admin_lets_another_machine_take_the_name(controller, node, tmp_path):
    Node(tmp_path / "first").join(controller, controller.token())
    assert node.join(controller, controller.token(replace=True)).changed


def test_name_that_left_the_inventory_is_free_again(controller, node, tmp_path):
    Node(tmp_path / "first").join(controller, controller.token())
    controller.publish(files=FILES, nodes={"c4": "127.0.0.1"})
    Node(tmp_path / "other").join(controller, controller.token(names=["c4"]), name="c4")
    controller.publish(files=FILES)
    assert node.join(controller, controller.token()).changed


def test_node_that_left_frees_its_name(controller, node, tmp_path):
    first = Node(tmp_path / "first")
    first.join(controller, controller.token())
    controller.now += 0.001
    controller.records.forget("c3")
    assert node.join(controller, controller.token()).changed
    with pytest.raises(RefusedError, match="a token is needed"):
        first.join(controller, None)


def test_revoked_token_counts_no_more(controller, node):
    token = controller.token()
    assert controller.records.remove_token(token.id)
    with pytest.raises(RefusedError, match="revoked"):
        node.join(controller, token)


def test_join_that_was_cut_goes_on(controller, node):
    token = controller.token()
    node.commands.answers.pop("systemd-tmpfiles")
    with pytest.raises(JoinError, match="systemd-tmpfiles"):
        node.join(controller, token)
    node.commands.answers["systemd-tmpfiles"] = ""
    node.commands.ran.clear()
    assert node.join(controller, token).changed
    assert "systemd-tmpfiles --create /etc/tmpfiles.d/a.conf" in node.commands.ran


def test_nobody_in_between_learns_the_token(tmp_path, node):
    """Another controller under the same address: the node asks it for its CA, and says nothing else."""
    with Controller(tmp_path / "own") as own, Controller(tmp_path / "false") as false:
        token = own.token()
        with pytest.raises(RefusedError, match="it was sent nothing"):
            node.join(false, token, pin=certificates.pin(own.ca.certificate))


def asked(controller, method, path, body=b"", **headers):
    context = ssl.create_default_context(cadata=controller.ca.certificate.decode())
    connection = http.client.HTTPSConnection(controller.server, context=context, timeout=10)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.mark.parametrize(
    "body", [b"", b"\0" * 1000, b"{}", b"[" * 9000, json.dumps({"schema": 1, "name": "c3"}).encode()]
)
def test_hostile_request_is_refused_and_the_service_goes_on(controller, node, body):
    status, reported = asked(controller, "POST", "/v1/join", body)
    assert status == 403
    assert b"Traceback" not in reported
    assert node.join(controller, controller.token()).changed


def test_request_without_end_is_cut_off(controller):
    assert asked(controller, "POST", "/v1/join", b"x" * (1 << 20))[0] == 413


def test_files_are_for_nodes_that_were_let_in(controller):
    digest = sha256((controller.folder.parent / "program").read_bytes()).hexdigest()
    for headers in ({}, {"Authorization": "Bearer x"}):
        assert asked(controller, "GET", f"/v1/files/{digest}", **headers)[0] == 403
    for path in ("/v1/files/../../etc/nodes.key", "/etc/passwd", f"/v1/files/{'0' * 64}", "/v1/join"):
        assert asked(controller, "GET", path)[0] in (403, 404, 405)


def test_no_secret_is_in_the_log(controller, node, caplog):
    caplog.set_level("DEBUG")
    token = controller.token()
    node.join(controller, token)
    with pytest.raises(RefusedError):
        node.join(controller, controller.token(), name="c9")
    assert "c3 joins from 127.0.0.1" in caplog.text
    assert MUNGE not in caplog.text
    assert token.secret not in caplog.text


def test_damaged_record_lets_nobody_in(controller, node):
    (controller.records.own / "joined.json").write_text("{}")
    with pytest.raises(JoinError, match="cannot let nodes in now"):
        node.join(controller, controller.token())


@pytest.mark.parametrize("link", ["whole.json", "/dev/zero"])
def test_admin_follows_no_link_of_the_services(controller, link):
    (controller.records.own / "whole.json").write_text(json.dumps({"names": {}, "used": {}}))
    (controller.records.own / "joined.json").symlink_to(link)
    with pytest.raises(JoinError, match="cannot be read"):
        controller.records.joined()


@pytest.fixture
def narrow(tmp_path):
    def made(name, **bounds):
        return Controller(tmp_path / name, Bounds(**{"burst": 2, "rate": 0, "body_s": 0.3, **bounds}))

    return made


def opened(controller):
    context = ssl.create_default_context(cadata=controller.ca.certificate.decode())
    host, port = controller.server.split(":")
    return context.wrap_socket(socket.create_connection((host, int(port)), 5), server_hostname=host)


def ended(connection, timeout_s):
    """Return whether the service ends a connection within this time."""
    connection.settimeout(timeout_s)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("bounds", [{"connections": 2}, {"connections_each": 2}])
def test_surplus_connections_end_and_others_stay(narrow, bounds):
    with narrow("few", silent_s=60, **bounds) as controller:
        first, second, third = (opened(controller) for _ in range(3))
        assert ended(third, 5)
        assert not ended(first, 0.3)
        second.close()
        assert asked(controller, "GET", "/v1/ca")[0] == 200


@pytest.mark.parametrize("bounds", [{"silent_s": 0.3}, {"life_s": 0.3}])
def test_connection_that_says_nothing_ends(narrow, bounds):
    with narrow("short", **bounds) as controller:
        assert ended(opened(controller), 5)
        assert asked(controller, "GET", "/v1/ca")[0] == 200


def test_request_that_never_comes_whole_ends(narrow):
    with narrow("slow") as controller, opened(controller) as connection:
        connection.sendall(b"POST /v1/join HTTP/1.1\r\nHost: c\r\nContent-Length: 100\r\n\r\n{")
        assert b" 408 " in connection.recv(1000)


def test_address_that_asks_too_often_waits(narrow):
    with narrow("busy") as controller:
        statuses = [asked(controller, "GET", "/v1/ca")[0] for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
