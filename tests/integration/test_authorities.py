"""A control plane of the real programs whose authorities are succeeded: who gets in, before, meanwhile and after."""

import json
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

import pytest
from cryptography import x509

from isthmus.controlplane.layout import Home
from isthmus.controlplane.pki import authorities, kubeconfig
from isthmus.controlplane.pki import issuing as pki
from isthmus.controlplane.pki.authorities import LIFE, OVERLAP, WINDOW
from isthmus.support import certificates
from tests.support.servers import control_planes
from tests.support.servers.etcd import program
from tests.support.wait import wait

NAMES = pki.Names("alice", "slurm", "cluster.local", IPv4Address("10.96.0.1"), (), (IPv4Address("127.0.0.1"),))
NOW = datetime.now(UTC)
OLD = "isthmus ca"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A cluster's home whose authorities end in less than two years."""
    made = Home(tmp_path_factory.mktemp("authorities") / "home")
    pki.ensure(made.cluster, NAMES, NOW - LIFE + WINDOW - timedelta(days=1))
    pki.ensure(made.cluster, NAMES, NOW)
    return made


@pytest.fixture(scope="module")
def control(home, tmp_path_factory):
    programs = control_planes.folder_of_programs(tmp_path_factory.mktemp("authorities") / "programs")
    made = control_planes.ControlPlane(home.home, programs)
    copy(made, "old")
    made.start()
    try:
        made.wait_until_ready()
        copy(made, "both")
        yield made
    finally:
        if made.process.poll() is None:
            made.stop()


def copy(control, name):
    """Keep a kubeconfig as a user does who copies it."""
    text = kubeconfig.of_user(control.layout, f"https://127.0.0.1:{control.ports.api}")
    (control.home / name).write_text(text)


def ask(control, name):
    command = [program("kubectl"), "--kubeconfig", str(control.home / name), "get", "namespace", "default"]
    done = subprocess.run([*command, "-o", "name"], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or done.stderr


def published(control):
    """Return what pods are configured to trust."""
    found = json.loads(control.kubectl("get", "configmap", "kube-root-ca.crt", "-o", "json"))
    return [each.subject for each in x509.load_pem_x509_certificates(found["data"]["ca.crt"].encode())]


def server_issuer(control):
    text = ssl.get_server_certificate(("127.0.0.1", control.ports.api))
    return x509.load_pem_x509_certificate(text.encode()).issuer


def successor():
    return certificates.name(f"{OLD} {NOW:%Y-%m-%d}")


def test_successor_is_trusted_and_old_one_signs(control):
    wait(lambda: published(control), lambda reported: reported == [certificates.name(OLD), successor()])
    assert server_issuer(control) == certificates.name(OLD)
    assert [ask(control, name) for name in ("old", "both")] == ["namespace/default"] * 2


def test_aggregated_servers_are_reported_both(control):
    text = control.kubectl("get", "configmap", "extension-apiserver-authentication", "-n", "kube-system", "-o", "json")
    reported = json.loads(text)["data"]
    files = {
        key: x509.load_pem_x509_certificates(reported[key].encode())
        for key in reported
        if key.endswith("client-ca-file")
    }
    assert {key: len(known) for key, known in files.items()} == {
        "client-ca-file": 2,
        "requestheader-client-ca-file": 2,
    }


def test_successor_signs_a_year_later_and_who_knew_it_gets_in(control):
    control.kubectl("create", "configmap", "kept")
    assert control.stop() == 0
    assert len(list(authorities.advance(control.layout, NOW + OVERLAP + timedelta(days=1)))) == len(authorities.NAMES)
    control.start("2")
    control.wait_until_ready()
    assert server_issuer(control) == successor()
    wait(lambda: published(control), lambda reported: reported == [successor(), certificates.name(OLD)])
    assert control.kubectl("get", "configmap", "kept", "-o", "name") == "configmap/kept"
    # Its key was signed by the old one.
    assert ask(control, "both") == "namespace/default"
    assert "certificate signed by unknown authority" in ask(control, "old")


def test_old_one_is_trusted_no_longer_after_its_end(control):
    assert control.stop() == 0
    assert list(authorities.advance(control.layout, NOW + WINDOW)) == []
    control.start("3")
    control.wait_until_ready()
    wait(lambda: published(control), lambda reported: reported == [successor()])
    assert "Unauthorized" in ask(control, "both") or "must be logged in" in ask(control, "both")
    assert {each["state"] for name, each in control.conditions().items() if name != "kubelet"} == {"ready"}
