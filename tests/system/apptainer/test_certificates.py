import json
from datetime import UTC, datetime, timedelta

import pytest

CA = "/etc/isthmus/ca.crt"
TRUSTED = "/etc/ssl/certs/ca-certificates.crt"
FOLDER = "/etc/isthmus/tls"
# Defaults of the role ca.
RENEW_BEFORE = timedelta(days=30)


def expiry(node, path):
    reported = node.output(f"openssl x509 -in {path} -noout -enddate -dateopt iso_8601").removeprefix("notAfter=")
    return datetime.fromisoformat(reported).astimezone(UTC)


def certificates(node):
    return node.output(f"find {FOLDER} -name '*.crt' 2>/dev/null || true").split()


def test_every_host_trusts_the_same_ca(nodes):
    assert len({node.output(f"sha256sum < {CA}") for node in nodes.values()}) == 1
    for node in nodes.values():
        assert node.output(f"stat -c '%a %U' {CA}") == "644 root"
        assert node.run(f"openssl verify -CAfile {TRUSTED} {CA}").rc == 0


def test_ca_can_sign_certificates_and_no_further_ca(controller):
    reported = controller.output(f"openssl x509 -in {CA} -noout -ext basicConstraints,keyUsage")
    assert "CA:TRUE, pathlen:0" in reported
    assert "Certificate Sign, CRL Sign" in reported


def test_key_of_the_ca_is_on_no_host(nodes):
    for node in nodes.values():
        assert node.output("find / -xdev -name 'ca.key' -newer /etc/machine-id 2>/dev/null || true") == ""


def test_every_certificate_is_signed_by_the_ca(nodes):
    found = [(node, path) for node in nodes.values() for path in certificates(node)]
    assert found
    for node, path in found:
        assert node.run(f"openssl verify -x509_strict -CAfile {CA} {path}").rc == 0


def test_no_certificate_ends_before_its_renewal(nodes):
    for node in nodes.values():
        for path in [CA, *certificates(node)]:
            assert expiry(node, path) > datetime.now(UTC) + RENEW_BEFORE


def test_keys_are_their_owners_alone(nodes, user):
    for node in nodes.values():
        for certificate in certificates(node):
            key = certificate.removesuffix(".crt") + ".key"
            assert node.output(f"stat -c %a {key}") == "600"
            assert node.try_as(user, f"cat {key}").rc != 0


@pytest.fixture
def address(controller):
    images = json.loads(controller.output("cat /etc/isthmus/images.json"))["images"]
    return next(iter(images.values()))["reference"].split("/")[0]


def test_registry_is_trusted_by_every_host_under_its_name(nodes, address):
    host = address.split(":")[0]
    for node in nodes.values():
        shown = node.run(f"openssl s_client -connect {address} -verify_hostname {host} -verify_return_error </dev/null")
        assert shown.rc == 0, shown.stderr


def test_registry_is_not_trusted_under_another_name(login, address):
    shown = login.run(
        f"openssl s_client -connect {address} -verify_hostname example.test -verify_return_error </dev/null"
    )
    assert shown.rc != 0
    assert "hostname mismatch" in (shown.stdout + shown.stderr).lower()
