"""The module registry_state: it reports a host as it is."""

import pytest

from tests.support import ansible_modules

PROGRAMS = ("docker-registry", "skopeo", "nginx")


@pytest.fixture
def module(monkeypatch, tmp_path):
    loaded = ansible_modules.load("roles/registry/library/registry_state.py")
    monkeypatch.setattr(loaded, "PROGRAMS", tuple(tmp_path / name for name in PROGRAMS))
    monkeypatch.setattr(loaded, "NGINX_RUNS", tmp_path / "nginx.pid")
    monkeypatch.setattr(loaded, "NGINX_UNIT", tmp_path / "nginx.service")
    return loaded


@pytest.mark.parametrize(("programs", "ready"), [(PROGRAMS, True), (PROGRAMS[:2], False), ((), False)])
def test_host_is_ready_with_all_programs(module, tmp_path, programs, ready):
    for name in programs:
        (tmp_path / name).touch()
    reported = ansible_modules.run(module, accounts=["root"])
    assert (reported["ready"], reported["lacking"], reported["changed"]) == (ready, [], False)


def test_host_without_an_account_is_not(module, tmp_path):
    for name in PROGRAMS:
        (tmp_path / name).touch()
    reported = ansible_modules.run(module, accounts=["root", "nobody-of-this-name"])
    assert (reported["ready"], reported["lacking"]) == (False, ["nobody-of-this-name"])


def test_nginx_that_nobody_uses_is_idle(module, tmp_path):
    assert ansible_modules.run(module, accounts=[])["idle_nginx"]
    (tmp_path / "nginx.service").symlink_to("/dev/null")
    assert ansible_modules.run(module, accounts=[])["idle_nginx"]


@pytest.mark.parametrize("sign", ["nginx.pid", "nginx.service"])
def test_nginx_of_an_admin_is_not(module, tmp_path, sign):
    (tmp_path / sign).touch()
    assert not ansible_modules.run(module, accounts=[])["idle_nginx"]
