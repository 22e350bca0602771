"""What the deployer signs, and with which keys."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.filters.errors import InputError
from isthmus.filters.trust import authority

KEY = ec.generate_private_key(ec.SECP256R1())
USAGE = x509.KeyUsage(True, False, False, False, False, False, False, False, False)


@pytest.fixture
def files(tmp_path):
    authority.make(str(tmp_path / "ca/ca"), "lab CA", [], 3650)
    return tmp_path / "ca/ca"


def load(files):
    return x509.load_pem_x509_certificate(files.with_suffix(".crt").read_bytes())


def request(*extensions):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "etcd")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.PEM).decode()


def signed(files, asked, days=365):
    made = authority.sign(asked, files.with_suffix(".crt").read_text(), f"{files}.key", days)
    return x509.load_pem_x509_certificate(made.encode())


def test_authority_signs_certificates_alone_and_none_below_it(files):
    found = load(files)
    assert found.subject.rfc4514_string() == "CN=lab CA,O=Isthmus"
    basic = found.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = found.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)
    found.verify_directly_issued_by(found)


def test_key_is_its_owners_alone(files):
    modes = [
        path.stat().st_mode & 0o777 for path in (files.parent, files.with_suffix(".key"), files.with_suffix(".crt"))
    ]
    assert modes == [0o700, 0o600, 0o644]


def test_authority_may_be_limited(tmp_path):
    authority.make(str(tmp_path / "nodes"), "lab nodes", ["clientAuth"], 10)
    usages = load(tmp_path / "nodes").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_renewed_authority_is_still_trusted_by_what_it_signed(files):
    before = signed(files, request(USAGE))
    authority.make(str(files), "another name by now", [], 7300)
    renewed = load(files)
    before.verify_directly_issued_by(renewed)
    assert renewed.not_valid_after_utc > datetime.now(UTC) + timedelta(days=7000)


def test_host_gets_what_it_may_ask_for_and_nothing_else(files):
    names = x509.SubjectAlternativeName([x509.DNSName("ctl")])
    found = signed(files, request(USAGE, names, x509.BasicConstraints(ca=True, path_length=None)))
    assert found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value == names
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert found.public_key() == KEY.public_key()
    found.verify_directly_issued_by(load(files))
    # Python's ssl refuses a certificate without it from 3.13 on.
    assert found.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)


def test_certificate_ends_with_its_authority(files):
    assert signed(files, request(USAGE), 100_000).not_valid_after_utc == load(files).not_valid_after_utc


@pytest.mark.parametrize("asked", ["", "no request", request(USAGE).replace("A", "B", 9)])
def test_what_is_no_request_is_refused(files, asked):
    with pytest.raises(InputError, match="no certificate request"):
        signed(files, asked)


def test_lost_key_is_named_and_not_made_again(files):
    files.with_suffix(".key").write_text("damaged")
    for use in (lambda: signed(files, request(USAGE)), lambda: authority.make(str(files), "lab CA", [], 1)):
        with pytest.raises(InputError, match=r"ca\.key holds no key"):
            use()
