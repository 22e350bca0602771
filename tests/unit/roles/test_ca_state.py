"""The module ca_state: it reports a host as it is."""

import pytest

from tests.support import ansible_modules


@pytest.fixture
def module(monkeypatch, tmp_path):
    loaded = ansible_modules.load("roles/ca/library/ca_state.py")
    monkeypatch.setattr(loaded, "AUTHORITY", tmp_path / "ca.crt")
    monkeypatch.setattr(loaded, "TRUSTED", tmp_path / "bundle.crt")
    return loaded


def test_new_host_trusts_nobody(module):
    reported = ansible_modules.run(module)
    assert (reported["authority"], reported["trusted"], reported["changed"]) == ("", False, False)


@pytest.mark.parametrize(("bundle", "trusted"), [("other\nmine\nmore\n", True), ("other\n", False), ("", False)])
def test_ca_is_trusted_when_the_systems_own_have_it(module, tmp_path, bundle, trusted):
    (tmp_path / "ca.crt").write_text("mine\n")
    (tmp_path / "bundle.crt").write_text(bundle)
    assert ansible_modules.run(module)["trusted"] is trusted
