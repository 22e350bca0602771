"""The module etcd_state: what it tells of a member is what is there."""

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
    told = look(user="no such user")
    assert (told["settings"], told["changed"]) == ("", False)
    assert not (told["has_data"] or told["has_user"] or told["runs"] or told["defrags"])


def test_live_member_is_told(look, tmp_path):
    (tmp_path / "etcd.yml").write_text("name: ctl\n")
    (tmp_path / "data/member").mkdir(parents=True)
    told = look("active\ninactive\n")
    assert (told["settings"], told["has_data"], told["has_user"]) == ("name: ctl\n", True, True)
    assert (told["runs"], told["defrags"]) == (True, False)
