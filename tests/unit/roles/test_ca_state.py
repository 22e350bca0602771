"""The module ca_state: what it tells of a host is what is there."""

import grp
import os
import pwd
import subprocess

import pytest

from tests.support import modules

OWNER = pwd.getpwuid(os.getuid()).pw_name
GROUP = grp.getgrgid(os.getgid()).gr_name


@pytest.fixture
def module(monkeypatch, tmp_path):
    loaded = modules.load("roles/ca/library/ca_state.py")
    monkeypatch.setattr(loaded, "AUTHORITY", tmp_path / "ca.crt")
    monkeypatch.setattr(loaded, "BELIEVED", tmp_path / "bundle.crt")
    return loaded


def test_new_host_has_nothing(module, tmp_path):
    told = modules.run(module, files=str(tmp_path / "tls/registry"))
    assert (told["authority"], told["believed"], told["certificate"], told["public_key"]) == ("", False, "", "")
    assert (told["kept"], told["changed"]) == (False, False)


@pytest.mark.parametrize(("bundle", "believed"), [("other\nmine\nmore\n", True), ("other\n", False), ("", False)])
def test_ca_is_believed_when_the_systems_own_have_it(module, tmp_path, bundle, believed):
    (tmp_path / "ca.crt").write_text("mine\n")
    (tmp_path / "bundle.crt").write_text(bundle)
    assert modules.run(module)["believed"] is believed


def test_public_key_is_that_of_the_key(module, tmp_path):
    make = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"]
    subprocess.run([*make, tmp_path / "registry.key"], check=True, capture_output=True)
    (tmp_path / "registry.crt").write_text("certificate")
    told = modules.run(module, files=str(tmp_path / "registry"))
    expected = ["openssl", "pkey", "-in", tmp_path / "registry.key", "-pubout"]
    assert told["public_key"] == subprocess.run(expected, check=True, capture_output=True, text=True).stdout
    assert told["certificate"] == "certificate"


@pytest.mark.parametrize(
    ("owner", "mode", "kept"),
    [(OWNER, 0o600, True), (OWNER, 0o640, False), ("daemon", 0o600, False), ("nobody-here", 0o600, False)],
)
def test_file_is_kept_with_its_owner_and_mode(module, tmp_path, owner, mode, kept):
    file = tmp_path / "registry.key"
    file.touch()
    file.chmod(mode)
    assert module.is_kept(file, owner, GROUP, 0o600) is kept
    assert not module.is_kept(tmp_path / "other", owner, GROUP, 0o600)
