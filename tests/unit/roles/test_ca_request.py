"""The module ca_request: a key that stays, and a request that says what was asked."""

import grp
import os
import pwd
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from tests.support import ansible_modules

NAMES = {"dns": ["ctl", "ctl.site"], "addresses": ["192.0.2.10", "2001:db8::1"]}


OWNER, GROUP = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name


@pytest.fixture
def module():
    return ansible_modules.load("roles/ca/library/ca_request.py")


@pytest.fixture
def ask(tmp_path, module):
    asked = {"files": str(tmp_path / "tls/etcd"), "owner": OWNER, "group": GROUP, "organization": "isthmus"}
    return lambda **other: ansible_modules.run(
        module, **{**asked, "usages": ["serverAuth", "clientAuth"], **NAMES, **other}
    )


def test_request_says_what_was_asked(ask):
    found = x509.load_pem_x509_csr(ask(common_name="etcd")["csr"].encode())
    assert found.subject.rfc4514_string() == "CN=etcd,O=isthmus"
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == NAMES["dns"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == NAMES["addresses"]
    usage = found.extensions.get_extension_for_class(x509.KeyUsage)
    assert (usage.critical, usage.value.digital_signature, usage.value.key_cert_sign) == (True, True, False)
    assert found.is_signature_valid


def test_client_may_have_no_name(ask):
    found = x509.load_pem_x509_csr(ask(dns=[], addresses=[], usages=["clientAuth"])["csr"].encode())
    assert not [each for each in found.extensions if isinstance(each.value, x509.SubjectAlternativeName)]


def test_key_stays_and_is_its_owners(ask, tmp_path):
    assert ask()["changed"]
    key = tmp_path / "tls/etcd.key"
    before = key.read_text()
    assert not ask()["changed"]
    key.chmod(0o644)
    assert ask()["changed"]
    assert (key.read_text(), stat.S_IMODE(key.stat().st_mode)) == (before, 0o600)


def test_what_is_no_key_is_replaced(ask, tmp_path):
    ask()
    (tmp_path / "tls/etcd.key").write_text("no key")
    assert ask()["changed"]
    assert "PRIVATE KEY" in (tmp_path / "tls/etcd.key").read_text()


def test_check_run_makes_nothing(ask, tmp_path):
    reported = ask(_ansible_check_mode=True)
    assert (reported["changed"], (tmp_path / "tls").exists()) == (True, False)


def test_unknown_owner_is_reported(ask):
    reported = ask(owner="nobody-has-this-name")
    assert reported["failed"]


def test_what_was_there_before_comes_back_too(ask, tmp_path):
    new = ask()
    assert (new["kept"], new["public_key"], new["certificate"]) == (False, "", "")
    (tmp_path / "tls/etcd.crt").write_text("certificate")
    key = load_pem_private_key((tmp_path / "tls/etcd.key").read_bytes(), None)
    reported = ask()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    assert (reported["kept"], reported["public_key"], reported["certificate"]) == (
        os.getuid() == 0,
        public,
        "certificate",
    )


@pytest.mark.parametrize(
    ("owner", "mode", "kept"),
    [(OWNER, 0o600, True), (OWNER, 0o640, False), ("daemon", 0o600, False), ("nobody-here", 0o600, False)],
)
def test_file_is_kept_with_its_owner_and_mode(module, tmp_path, owner, mode, kept):
    file = tmp_path / "registry.key"
    file.touch()
    file.chmod(mode)
    assert module.is_kept(file, owner, GROUP, 0o600) is kept
    assert not module.is_kept(tmp_path / "other", owner, GROUP, 0o600)


def test_host_without_cryptography_is_no_failure_but_gives_no_request(ask, module, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "x509", None)
    reported = ask()
    assert (reported["csr"], reported["changed"], (tmp_path / "tls").exists()) == ("", False, False)
