"""Certificates, judged by the rules of the web as another library has them."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import DNSName, IPAddress
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from isthmus.support import certificates
from isthmus.support.certificates import Issuer, Subject, Usage

DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = [DNSName("ctl.example"), IPAddress(ip_address("192.0.2.1"))]


def authority(name="CA", lifetime=100 * DAY, **options):
    key = certificates.new_key()
    return Issuer(certificates.authority(Subject(certificates.name(name)), key, lifetime, NOW, **options), key)


CA = authority()


def leaf(issuer=CA, usages=(Usage.SERVER,), lifetime=DAY, now=NOW):
    subject = Subject(certificates.name("ctl", ["lab"]), usages, NAMES)
    return certificates.leaf(subject, certificates.new_key().public_key(), issuer, lifetime, now)


def policy(now=NOW, trust=CA):
    return PolicyBuilder().store(Store([trust.certificate])).time(now)


def test_server_is_trusted_by_its_names():
    for name in NAMES:
        chain = policy().build_server_verifier(name).verify(leaf(), [])
        assert chain[-1] == CA.certificate
    with pytest.raises(VerificationError):
        policy().build_server_verifier(DNSName("other.example")).verify(leaf(), [])


def test_client_is_no_server():
    client = leaf(usages=[Usage.CLIENT])
    assert policy().build_client_verifier().verify(client, []).subjects == NAMES
    with pytest.raises(VerificationError):
        policy().build_server_verifier(NAMES[0]).verify(client, [])


@pytest.mark.parametrize("now", [NOW - 2 * certificates.EARLIER, NOW + 2 * DAY])
def test_certificate_has_its_time(now):
    with pytest.raises(VerificationError):
        policy(now).build_server_verifier(NAMES[0]).verify(leaf(), [])
    policy(NOW - certificates.EARLIER / 2).build_server_verifier(NAMES[0]).verify(leaf(), [])


def test_leaf_signs_nobody():
    key = certificates.new_key()
    middle = certificates.leaf(Subject(certificates.name("middle")), key.public_key(), CA, DAY, NOW)
    with pytest.raises(VerificationError):
        policy().build_server_verifier(NAMES[0]).verify(leaf(Issuer(middle, key)), [middle])


def test_nothing_outlives_its_authority():
    short = authority(lifetime=DAY)
    assert leaf(short, lifetime=100 * DAY).not_valid_after_utc == NOW + DAY


def test_request_gets_what_is_granted():
    builder = x509.CertificateSigningRequestBuilder().subject_name(certificates.name("host"))
    builder = builder.add_extension(x509.SubjectAlternativeName(NAMES), False)
    asked = builder.add_extension(x509.BasicConstraints(True, None), True).sign(certificates.new_key(), SHA256())
    made = certificates.grant(asked, (x509.SubjectAlternativeName,), CA, DAY)
    assert (made.subject, certificates.alternatives(made)) == (asked.subject, NAMES)
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


@pytest.mark.parametrize(
    ("lifetime", "left", "is_due"),
    [(10, 5, False), (10, 10, True), (10, 20, True), (100, 200, False), (200, 200, False)],
)
def test_renewal_is_due_unless_the_authority_ends_too(lifetime, left, is_due):
    found = leaf(lifetime=lifetime * DAY)
    assert certificates.is_due(found, CA.certificate, left * DAY, NOW) == is_due


def test_certificate_of_a_former_authority_is_due():
    namesake = authority("CA")
    assert certificates.is_due(leaf(), namesake.certificate, timedelta(0), NOW)
    assert not certificates.is_signed_by(leaf(), authority("other").certificate)
    assert certificates.alternatives(CA.certificate) == []


def test_key_is_read_as_it_was_written():
    key = certificates.new_key(ec.SECP384R1())
    for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL):
        read = certificates.read_key(certificates.key_pem(key, form).encode())
        assert certificates.fingerprint(read.public_key()) == certificates.fingerprint(key.public_key())
    assert certificates.fingerprint(key.public_key()) != certificates.fingerprint(CA.key.public_key())


def test_other_keys_are_refused():
    other = rsa.generate_private_key(65537, 2048)
    with pytest.raises(TypeError):
        certificates.read_key(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(ValueError, match="PEM"):
        certificates.read_key(b"none")
