from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from isthmus.filters.trust.ca import ca_certificate_fits
from isthmus.node import certificates
from isthmus.node.certificates import CertificateError
from isthmus.support.certificates import public_pem
from tests.support.fakes.join_controller import authority

AUTHORITY = authority("nodes")
KEY = certificates.make_key()


def request_of(key, name="evil", **extensions):
    builder = x509.CertificateSigningRequestBuilder()
    builder = builder.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
    builder = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
    return builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("ctl")]), False).sign(key, SHA256())


def test_certificate_is_what_role_ca_gives():
    signed = certificates.sign(certificates.requested(certificates.request(KEY)), AUTHORITY, "dev", 365)
    shown = public_pem(x509.load_pem_x509_certificate(signed).public_key())
    state = {"kept": True, "public_key": shown, "certificate": signed.decode()}
    wanted = {"common_name": "", "organization": "dev", "names": [], "usages": ["clientAuth"]}
    assert ca_certificate_fits(state, authority("ca").certificate.decode() + AUTHORITY.certificate.decode(), wanted, 30)
    assert not ca_certificate_fits(state, authority("ca").certificate.decode(), wanted, 30)


def test_nothing_is_signed_but_the_key():
    asked = request_of(ec.generate_private_key(ec.SECP256R1())).public_bytes(Encoding.PEM)
    signed = x509.load_pem_x509_certificate(certificates.sign(certificates.requested(asked), AUTHORITY, "dev", 365))
    assert signed.subject.rfc4514_string() == "O=dev"
    kinds = {type(each.value) for each in signed.extensions}
    identifiers = {x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier}
    assert kinds == {x509.BasicConstraints, x509.KeyUsage, x509.ExtendedKeyUsage} | identifiers
    assert not signed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_certificate_ends_with_its_authority():
    wanted = certificates.requested(certificates.request(KEY))
    signed = x509.load_pem_x509_certificate(certificates.sign(wanted, AUTHORITY, "dev", 100_000))
    assert signed.not_valid_after_utc == x509.load_pem_x509_certificate(AUTHORITY.certificate).not_valid_after_utc


def test_certificate_is_kept_while_it_lasts():
    signed = certificates.sign(certificates.requested(certificates.request(KEY)), AUTHORITY, "dev", 100)
    assert certificates.is_kept(signed, KEY, 99)
    assert not certificates.is_kept(signed, KEY, 100)
    assert not certificates.is_kept(signed, certificates.make_key(), 1)
    assert not certificates.is_kept(b"", KEY, 1)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        b"x" * 5000,
        request_of(rsa.generate_private_key(65537, 2048)).public_bytes(Encoding.PEM),
        request_of(ec.generate_private_key(ec.SECP384R1())).public_bytes(Encoding.PEM),
    ],
)
def test_request_that_is_none_is_refused(text):
    with pytest.raises(CertificateError):
        certificates.requested(text)


def test_request_that_its_key_did_not_sign_is_refused():
    whole = bytearray(request_of(ec.generate_private_key(ec.SECP256R1())).public_bytes(Encoding.DER))
    whole[-1] ^= 1
    damaged = x509.load_der_x509_csr(bytes(whole)).public_bytes(Encoding.PEM)
    with pytest.raises(CertificateError):
        certificates.requested(damaged)


def test_pin_is_of_the_key():
    """A renewed certificate of the CA is still the token's."""
    one, other = authority("ca"), authority("ca")
    renewed = authority("ca", key=one.key, lasts=timedelta(days=5))
    assert (
        certificates.pin(one.certificate)
        == certificates.pin(renewed.certificate)
        != certificates.pin(other.certificate)
    )


def test_pin_is_of_an_authority_alone():
    signed = certificates.sign(certificates.requested(certificates.request(KEY)), AUTHORITY, "dev", 1)
    for text in (b"", b"-----BEGIN CERTIFICATE-----", signed):
        with pytest.raises(CertificateError):
            certificates.pin(text)
