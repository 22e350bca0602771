"""A deployer goes on with the CA that hosts trust, and with no other."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from isthmus.filters.errors import InputError
from isthmus.filters.trust.ca import ca_days_left, ca_problems

KEY = "/state/ca/ca.key"


def certificate(key, days=10, start=datetime(2026, 1, 1, tzinfo=UTC)):
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "CA")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    builder = builder.not_valid_before(start).not_valid_after(start + timedelta(days=days))
    return builder.public_key(key.public_key()).sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


@pytest.fixture(scope="module")
def keys():
    return [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]


def test_new_cluster_is_no_problem():
    assert ca_problems("", "", KEY) == []


def test_same_ca_is_no_problem_nor_is_its_renewal(keys):
    on_host = certificate(keys[0])
    assert ca_problems(on_host, on_host.strip(), KEY) == []
    assert ca_problems(on_host, certificate(keys[0], days=20), KEY) == []
    assert ca_problems("", on_host, KEY) == []


def test_lost_ca_is_refused_with_the_remedy(keys):
    (problem,) = ca_problems(certificate(keys[0]), "", KEY)
    assert f"has no key on this deployer at {KEY}; bring the folder back" in problem


def test_other_ca_is_refused_with_the_remedy(keys):
    (problem,) = ca_problems(certificate(keys[0]), certificate(keys[1]), KEY)
    assert f"is another's than {KEY}; bring the folder back" in problem


def test_file_that_is_no_certificate_is_refused(keys):
    with pytest.raises(InputError, match="holds no certificate"):
        ca_problems("hello", certificate(keys[0]), KEY)


def test_days_left_are_whole_days_from_now(keys):
    now = datetime.now(UTC)
    assert ca_days_left(certificate(keys[0], days=10, start=now - timedelta(hours=1))) == 9
    assert ca_days_left(certificate(keys[0], days=10, start=now - timedelta(days=20))) == 0
    assert ca_days_left("") == 0
