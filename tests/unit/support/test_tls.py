"""A client's certificate is read again when it was renewed."""

import ssl

import pytest

from isthmus.support.tls import ClientTls
from tests.support.files import certificates


@pytest.fixture
def files(tmp_path):
    certificates.write(tmp_path / "pki")
    return tmp_path / "pki"


@pytest.fixture
def tls(files):
    return ClientTls(files / "ca.crt", files / "client.crt", files / "client.key")


def test_files_are_read_once(tls):
    assert tls.context() is tls.context()


def test_renewed_files_are_read_again(tls, files, tmp_path):
    before = tls.context()
    certificates.write(tmp_path / "renewed")
    for renewed in (tmp_path / "renewed").iterdir():
        renewed.replace(files / renewed.name)
    assert tls.context() is not before


def test_renewal_that_is_half_done_leaves_what_was_there(tls, files, tmp_path):
    before = tls.context()
    certificates.write(tmp_path / "renewed")
    (tmp_path / "renewed/client.crt").replace(files / "client.crt")
    assert tls.context() is before
    (tmp_path / "renewed/client.key").replace(files / "client.key")
    assert tls.context() is not before


def test_files_that_cannot_be_read_any_more_leave_what_is_known(tls, files):
    before = tls.context()
    (files / "client.key").unlink()
    assert tls.context() is before


def test_file_that_is_not_there_is_named_and_looked_for_again(tls, files):
    (files / "client.key").rename(files / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"client\.key"):
        tls.context()
    (files / "elsewhere").rename(files / "client.key")
    assert isinstance(tls.context(), ssl.SSLContext)


def test_files_that_do_not_go_together_are_named(tls, files):
    (files / "etcd.key").replace(files / "client.key")
    with pytest.raises(OSError, match=r"client\.crt and .*client\.key do not go together"):
        tls.context()
