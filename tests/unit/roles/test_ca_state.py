"""The module ca_state: what it tells of a host is what is there."""

import pytest

from tests.support import ansible_modules


@pytest.fixture
def module(monkeypatch, tmp_path):
    loaded = ansible_modules.load("roles/ca/library/ca_state.py")
    monkeypatch.setattr(loaded, "AUTHORITY", tmp_path / "ca.crt")
    monkeypatch.setattr(loaded, "BELIEVED", tmp_path / "bundle.crt")
    return loaded


def test_new_host_believes_nobody(module):
    told = ansible_modules.run(module)
    assert (told["authority"], told["believed"], told["changed"]) == ("", False, False)


@pytest.mark.parametrize(("bundle", "believed"), [("other\nmine\nmore\n", True), ("other\n", False), ("", False)])
def test_ca_is_believed_when_the_systems_own_have_it(module, tmp_path, bundle, believed):
    (tmp_path / "ca.crt").write_text("mine\n")
    (tmp_path / "bundle.crt").write_text(bundle)
    assert ansible_modules.run(module)["believed"] is believed
