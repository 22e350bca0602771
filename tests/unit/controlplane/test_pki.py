"""Keys and certificates: what is made, when it is made again, who may read it."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from shutil import copytree

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki import authorities
from isthmus.controlplane.pki import issuing as pki

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = pki.Names(
    "alice", "slurm", "cluster.local", IPv4Address("10.96.0.1"), ("kubernetes.alice",), (IPv4Address("10.64.0.3"),)
)
MOVED = pki.Names("alice", "slurm", "cluster.local", IPv4Address("10.96.0.1"), (), (IPv4Address("10.64.0.9"),))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Made once: every file is synced."""
    made = Layout(tmp_path_factory.mktemp("pki") / "cluster")
    pki.ensure(made, NAMES, NOW)
    return made


@pytest.fixture
def layout(made, tmp_path):
    """One's own copy."""
    return Layout(copytree(made.folder, tmp_path / "cluster"))


def certificate(layout, name):
    return x509.load_pem_x509_certificate(layout.certificate(name).read_bytes())


def attribute(layout, name, oid):
    return [each.value for each in certificate(layout, name).subject.get_attributes_for_oid(oid)]


@pytest.mark.parametrize("leaf", pki.leaves(NAMES), ids=lambda leaf: leaf.name)
def test_certificate_is_signed_by_its_authority(layout, leaf):
    certificate(layout, leaf.name).verify_directly_issued_by(certificate(layout, leaf.authority))


@pytest.mark.parametrize("leaf", pki.leaves(NAMES), ids=lambda leaf: leaf.name)
def test_pair_fits(layout, leaf):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(layout.certificate(leaf.name), layout.key(leaf.name))


def test_files_are_the_owners_alone(layout):
    assert layout.pki.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in layout.pki.iterdir()} == {0o600}


def test_apiserver_is_known_by_every_name(layout):
    found = certificate(layout, "apiserver").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"kubernetes.default.svc.cluster.local", "kubernetes.alice"} <= set(found.get_values_for_type(x509.DNSName))
    wanted = {IPv4Address(text) for text in ("127.0.0.1", "10.96.0.1", "10.64.0.3")}
    assert set(found.get_values_for_type(x509.IPAddress)) == wanted


def test_kubelet_is_a_node(layout):
    assert attribute(layout, "kubelet", NameOID.COMMON_NAME) == ["system:node:slurm"]
    assert attribute(layout, "kubelet", NameOID.ORGANIZATION_NAME) == ["system:nodes"]


def test_second_run_makes_nothing(layout):
    assert pki.ensure(layout, NAMES, NOW) == []


def test_move_renews_servers_alone(layout):
    assert pki.ensure(layout, MOVED, NOW) == ["apiserver", "kubelet"]


def test_leaves_are_renewed_before_they_expire(layout):
    later = NOW + pki.LIFE - pki.RENEWAL
    assert pki.ensure(layout, NAMES, later - timedelta(days=1)) == []
    assert pki.ensure(layout, NAMES, later) == [leaf.name for leaf in pki.leaves(NAMES)]
    assert certificate(layout, "admin").not_valid_after_utc > later + timedelta(days=300)


def test_lost_or_foreign_key_is_made_again(layout):
    layout.key("admin").unlink()
    layout.key("etcd").write_bytes(layout.key("coredns").read_bytes())
    assert pki.ensure(layout, NAMES, NOW) == ["etcd", "admin"]


def test_no_leaf_outlives_its_authority(layout):
    late = NOW + authorities.LIFE - timedelta(days=200)
    pki.ensure(layout, NAMES, late)
    ends = dict(pki.expiries(layout))
    assert ends["admin"] == ends["ca"]
