"""The pods' folders."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from isthmus.kubelet import credentials
from isthmus.kubelet.credentials import Authority
from isthmus.kubelet.pods import store
from isthmus.kubelet.pods.store import Store
from tests.support.files import certificates

UID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def folder(tmp_path):
    made = Store(tmp_path / "pods").folder(UID)
    made.accept({"metadata": {"uid": UID}})
    return made


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return certificates.write_cluster(tmp_path_factory.mktemp("keys") / "pki")


@pytest.fixture(scope="module")
def authority(keys):
    return Authority(keys)


def modes(folder):
    return {path.stat().st_mode & 0o777 for path in [folder.path, *folder.path.rglob("*")] if path.is_dir()}, {
        path.stat().st_mode & 0o777 for path in folder.path.rglob("*") if path.is_file()
    }


def test_what_is_kept_is_the_owners(folder, authority):
    folder.set_job("12")
    folder.set_address("10.0.0.1", 10260)
    folder.renew_credential(authority)
    assert modes(folder) == ({0o700}, {0o600})
    assert (folder.job(), folder.pod()) == ("12", {"metadata": {"uid": UID}})


@pytest.mark.parametrize("uid", ["", "..", "../x", UID.upper().replace("1", "A"), UID + "/x"])
def test_other_names_lead_nowhere(tmp_path, uid):
    with pytest.raises(ValueError, match="is no UID"):
        Store(tmp_path / "pods").folder(uid)


def test_half_of_a_file_is_none(folder):
    (folder.path / "report.json").write_text('{"half')
    assert folder.report() is None
    assert folder.job() is None


def test_credential_is_renewed_at_half_its_life(folder, authority, monkeypatch):
    certificate = folder.path / "credential/tls.crt"
    folder.renew_credential(authority)
    first = certificate.read_text()
    folder.renew_credential(authority)
    assert certificate.read_text() == first
    monkeypatch.setattr(credentials, "LIFETIME", credentials.LIFETIME * 3)
    folder.renew_credential(authority)
    assert certificate.read_text() != first


def test_credential_is_renewed_when_another_authority_signs(folder, keys, authority, tmp_path):
    folder.renew_credential(authority)
    successor = Authority(certificates.succeeded(keys, tmp_path / "pki"))
    first = (folder.path / "credential/tls.crt").read_text()
    assert successor.is_due(first, datetime.now(UTC))
    folder.renew_credential(successor)
    second = (folder.path / "credential/tls.crt").read_text()
    assert not successor.is_due(second, datetime.now(UTC))
    assert (folder.path / "credential/ca.crt").read_text() == successor.certificate


def test_pod_trusts_a_successor_before_it_signs(folder, keys, authority, tmp_path):
    folder.renew_credential(authority)
    before = (folder.path / "credential/tls.crt").read_text()
    published = certificates.succeeded(keys, tmp_path / "pki")
    both = authority.certificate + (published / "pods-ca.crt").read_text()
    (published / "pods-ca.crt").write_text(both)
    (published / "pods-ca.key").write_bytes((keys / "pods-ca.key").read_bytes())
    folder.renew_credential(Authority(published))
    assert (folder.path / "credential/tls.crt").read_text() == before
    assert (folder.path / "credential/ca.crt").read_text() == both


def test_credential_that_ends_with_its_authority_is_made_once(folder, authority, monkeypatch):
    monkeypatch.setattr(credentials, "LIFETIME", timedelta(days=365))
    folder.renew_credential(authority)
    first = (folder.path / "credential/tls.crt").read_text()
    folder.renew_credential(authority)
    assert (folder.path / "credential/tls.crt").read_text() == first


def test_nothing_is_left(folder, authority):
    folder.set_job("12")
    folder.renew_credential(authority)
    logs = folder.path / "logs/main"
    logs.mkdir(parents=True)
    for number in (10, 9):
        (logs / f"{number}.log").touch()
    assert [path.stem for (path,) in folder.logs("main")] == ["9", "10"]
    folder.remove()
    folder.remove()
    assert not folder.path.exists()


def test_file_that_goes_by_itself_does_not_keep_the_folder(folder, monkeypatch):
    (folder.path / "logs").mkdir(parents=True)
    left = [FileNotFoundError("report.json.part")]

    def rmtree(path):
        if left:
            raise left.pop()
        shutil.rmtree(path)

    monkeypatch.setattr(store, "rmtree", rmtree)
    folder.remove()
    assert not folder.path.exists()


def test_other_folders_are_left_alone(tmp_path, folder):
    store = Store(tmp_path / "pods")
    (store.path / "notes").mkdir()
    assert [each.uid for each in store.folders()] == [UID]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (None, ""),
        ("", ""),
        ("one\n\n  two \n", "one; two"),
        ("1\n2\n3\n4\n", "2; 3; 4"),
        ("x" * 5000, "x" * 1000),
        (b"\xff broken\n", "\ufffd broken"),
    ],
)
def test_last_words_of_a_job_are_its_logs_last_lines(folder, written, words):
    if written is not None:
        (folder.path / "slurm.log").write_bytes(written if isinstance(written, bytes) else written.encode())
    assert folder.last_words() == words
