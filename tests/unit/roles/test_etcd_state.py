"""The module etcd_state: it reports a member as it is."""

import pytest

from tests.support import ansible_modules


@pytest.fixture
def look(monkeypatch, tmp_path):
    module = ansible_modules.load("roles/etcd/library/etcd_state.py")

    def call(active="inactive\ninactive\n", user="root"):
        monkeypatch.setattr(module, "USER", user)
        monkeypatch.setattr(module.AnsibleModule, "run_command", lambda *_: (3, active, ""))
        return ansible_modules.run(module, settings=str(tmp_path / "etcd.yml"), data=str(tmp_path / "data"))

    return call


def test_new_host_has_nothing(look):
    reported = look(user="no such user")
    assert (reported["settings"], reported["changed"]) == ("", False)
    assert not (reported["has_data"] or reported["has_user"] or reported["runs"] or reported["defrags"])


def test_live_member_is_reported(look, tmp_path):
    (tmp_path / "etcd.yml").write_text("name: ctl\n")
    (tmp_path / "data/member").mkdir(parents=True)
    reported = look("active\ninactive\n")
    assert (reported["settings"], reported["has_data"], reported["has_user"]) == ("name: ctl\n", True, True)
    assert (reported["runs"], reported["defrags"]) == (True, False)
