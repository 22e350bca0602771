"""The key of tokens is made once, and its certificate is the key's."""

import pytest
from cryptography import x509

from isthmus.registry.keys import KeyFileError, key


def certificate(folder):
    return x509.load_pem_x509_certificate((folder / "token.crt").read_bytes())


def test_key_is_made_once_and_closed(tmp_path):
    first = key(tmp_path)
    assert key(tmp_path).private_numbers() == first.private_numbers()
    assert (tmp_path / "token.key").stat().st_mode & 0o777 == 0o600
    assert certificate(tmp_path).public_key() == first.public_key()
    constraints = certificate(tmp_path).extensions.get_extension_for_class(x509.BasicConstraints)
    assert not constraints.value.ca


def test_lost_key_gets_a_new_certificate_too(tmp_path):
    first = key(tmp_path)
    (tmp_path / "token.key").unlink()
    assert key(tmp_path).private_numbers() != first.private_numbers()
    assert certificate(tmp_path).public_key() == key(tmp_path).public_key()


def test_lost_certificate_is_made_again(tmp_path):
    first = key(tmp_path)
    (tmp_path / "token.crt").unlink()
    assert key(tmp_path).public_key() == first.public_key() == certificate(tmp_path).public_key()


@pytest.mark.parametrize("content", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"])
def test_file_that_is_no_key_is_refused_with_a_remedy(tmp_path, content):
    (tmp_path / "token.key").write_text(content)
    with pytest.raises(KeyFileError, match="remove it"):
        key(tmp_path)
