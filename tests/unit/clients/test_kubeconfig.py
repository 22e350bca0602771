"""Kubeconfigs as programs read them."""

import base64
import ssl

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from isthmus.clients.kube import kubeconfig
from isthmus.clients.kube.kubeconfig import KubeconfigError
from tests.support.files import certificates


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return certificates.write_cluster(tmp_path_factory.mktemp("cluster") / "pki")


def write(folder, user, **changes):
    """A kubeconfig with two contexts, of which the current one has this user."""
    cluster = {"server": "https://127.0.0.1:6443/", "certificate-authority": "pki/ca.crt"}
    content = {
        "clusters": [{"name": "other", "cluster": {}}, {"name": "own", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "own", "user": "me"}}],
        "current-context": "here",
        **changes,
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


FILES = {"client-certificate": "pki/admin.crt", "client-key": "pki/admin.key"}


def test_files_are_as_seen_from_its_folder(keys):
    found = kubeconfig.read(write(keys.parent, FILES))
    assert found.server == "https://127.0.0.1:6443"
    assert found.key == (keys / "admin.key").read_bytes()
    context = found.tls()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert [each["subject"] for each in context.get_ca_certs()] == [((("commonName", "ca"),),)]


def test_what_it_holds_itself_is_the_same(keys):
    data = {f"{key}-data": base64.b64encode((keys.parent / file).read_bytes()).decode() for key, file in FILES.items()}
    of_files, of_data = (kubeconfig.read(write(keys.parent, user)) for user in (FILES, data))
    assert of_files == of_data
    of_data.tls()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"current-context": "there"}, "it has no context there"),
        ({"contexts": []}, "it has no context here"),
        ({"contexts": [{"name": "here", "context": {"cluster": "own"}}]}, "it has no 'user'"),
        ({"clusters": [{"name": "own", "cluster": {"server": "http://127.0.0.1"}}]}, "no https:// URL"),
        ({"clusters": None}, "cannot be used"),
        ({"users": [{"name": "me", "user": {"exec": {"command": "touch"}}}]}, "no client certificate"),
        ({"users": [{"name": "me", "user": {"token": "secret"}}]}, "no client certificate"),
        ({"users": [{"name": "me", "user": FILES | {"client-key": "pki/none.key"}}]}, "No such file"),
        ({"users": [{"name": "me", "user": FILES | {"client-key-data": "*"}}]}, "cannot be used"),
    ],
)
def test_what_cannot_be_used_says_why(keys, changes, words):
    with pytest.raises(KubeconfigError, match=words) as caught:
        kubeconfig.read(write(keys.parent, FILES, **changes))
    assert str(caught.value).endswith("write it again with `isthmus up`")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "a: b", "\tx"])
def test_other_file_is_refused(tmp_path, text):
    (tmp_path / "config").write_text(text)
    with pytest.raises(KubeconfigError):
        kubeconfig.read(tmp_path / "config")


@pytest.mark.parametrize("swapped", ["client-key", "client-certificate", "certificate-authority"])
def test_key_of_another_serves_nobody(keys, swapped):
    path = write(keys.parent, FILES | {swapped: "pki/nobody.key"})
    if swapped == "certificate-authority":
        path.write_text(path.read_text().replace("pki/ca.crt", "pki/nobody.key"))
    with pytest.raises(KubeconfigError, match="do not serve"):
        kubeconfig.read(path).tls()


def test_key_with_a_password_asks_nobody(keys):
    key = load_pem_private_key((keys / "admin.key").read_bytes(), None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    (keys / "locked.key").write_bytes(text)
    with pytest.raises(KubeconfigError, match="password"):
        kubeconfig.read(write(keys.parent, FILES | {"client-key": "pki/locked.key"})).tls()
