"""A certificate stays while it is what the role would make today."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from isthmus.filters.trust.ca import ca_certificate_fits, ca_request_is_as_wanted

CA, OTHER_CA, KEY, OTHER_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
ISSUER = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "CA")])
SUBJECT = [(x509.NameOID.COMMON_NAME, "registry"), (x509.NameOID.ORGANIZATION_NAME, "isthmus")]
WANTED = {
    "common_name": "registry",
    "organization": "isthmus",
    "names": ["IP:192.0.2.10", "DNS:ctl"],
    "usages": ["serverAuth"],
}
NOW = datetime.now(UTC)


def pem(certificate):
    return certificate.public_bytes(Encoding.PEM).decode()


def authority(key=CA):
    builder = x509.CertificateBuilder(ISSUER, ISSUER, key.public_key(), 1, NOW, NOW + timedelta(days=3650))
    return pem(builder.sign(key, SHA256()))


def certificate(signer=CA, subject=SUBJECT, days=100):
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    end = NOW + timedelta(days=days, hours=1)
    usage = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
    usage |= dict.fromkeys(("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"), False)
    builder = x509.CertificateBuilder(ISSUER, name, KEY.public_key(), 2, NOW, end)
    names = [x509.DNSName("ctl"), x509.IPAddress(ip_address("192.0.2.10"))]
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.KeyUsage(digital_signature=True, **usage), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return pem(builder.sign(signer, SHA256()))


def state(key=KEY, kept=True, **how):
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return {"kept": kept, "public_key": public, "certificate": certificate(**how)}


def test_certificate_that_is_what_is_wanted_stays():
    assert ca_certificate_fits(state(), authority(), WANTED, 30)
    assert ca_certificate_fits(state(days=30), authority(), WANTED, 30)


def test_name_may_be_left_out():
    present = state(subject=SUBJECT[1:])
    assert ca_certificate_fits(present, authority(), WANTED | {"common_name": ""}, 30)
    assert not ca_certificate_fits(present, authority(), WANTED, 30)


@pytest.mark.parametrize(
    "present",
    [
        state(kept=False),
        state(key=OTHER_KEY),
        state(signer=OTHER_CA),
        state(days=29),
        state() | {"certificate": ""},
        state() | {"certificate": "hello"},
        state() | {"public_key": ""},
    ],
    ids=["owner or mode", "other key", "other CA", "ends soon", "none", "no certificate", "no key"],
)
def test_certificate_that_no_longer_holds_is_made_again(present):
    assert not ca_certificate_fits(present, authority(), WANTED, 30)


@pytest.mark.parametrize(
    "differs",
    [
        {"common_name": "other"},
        {"organization": "other"},
        {"names": ["DNS:ctl"]},
        {"names": [*WANTED["names"], "DNS:localhost"]},
        {"names": []},
        {"usages": ["serverAuth", "clientAuth"]},
        {"usages": ["clientAuth"]},
    ],
    ids=str,
)
def test_certificate_for_something_else_is_made_again(differs):
    assert not ca_certificate_fits(state(), authority(), WANTED | differs, 30)


def test_without_a_ca_nothing_fits():
    assert not ca_certificate_fits(state(), "", WANTED, 30)


def request(names=("ctl",), usages=(ExtendedKeyUsageOID.SERVER_AUTH,), subject=SUBJECT, more=()):
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    others = [*map(x509.DNSName, names), x509.IPAddress(ip_address("192.0.2.10")), *more]
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    for extension in (usage, x509.ExtendedKeyUsage(usages), x509.SubjectAlternativeName(others)):
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.PEM).decode()


def test_request_for_what_the_role_gives_is_signed():
    assert ca_request_is_as_wanted(request(), WANTED)


@pytest.mark.parametrize(
    "changed",
    [
        {"names": ("ctl", "member.etcd.isthmus")},
        {"names": ("c2",)},
        {"names": ()},
        {"more": [x509.IPAddress(ip_address("192.0.2.11"))]},
        {"more": [x509.UniformResourceIdentifier("https://ctl")]},
        {"usages": (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)},
        {"subject": [*SUBJECT, (x509.NameOID.COMMON_NAME, "root")]},
    ],
)
def test_request_of_a_host_that_would_be_another_is_not_signed(changed):
    assert not ca_request_is_as_wanted(request(**changed), WANTED)


def test_what_is_no_request_is_not_signed():
    assert not ca_request_is_as_wanted("x", WANTED)
