"""The module etcd_state: it reports a member as it is."""

import http.server
import threading

import pytest

from tests.support import ansible_modules


@pytest.fixture
def look(monkeypatch, tmp_path):
    module = ansible_modules.load("roles/etcd/library/etcd_state.py")

    def call(active="inactive\ninactive\n", user="root", metrics="http://127.0.0.1:1/metrics"):
        monkeypatch.setattr(module, "USER", user)
        monkeypatch.setattr(module.AnsibleModule, "run_command", lambda *_: (3, active, ""))
        return ansible_modules.run(
            module, settings=str(tmp_path / "etcd.yml"), data=str(tmp_path / "data"), metrics=metrics
        )

    return call


def test_new_host_has_nothing(look):
    reported = look(user="no such user")
    assert (reported["settings"], reported["changed"], reported["version"]) == ("", False, "")
    assert not (reported["has_data"] or reported["has_user"] or reported["runs"] or reported["defrags"])


def test_live_member_is_reported(look, tmp_path):
    (tmp_path / "etcd.yml").write_text("name: ctl\n")
    (tmp_path / "data/member").mkdir(parents=True)
    reported = look("active\ninactive\n")
    assert (reported["settings"], reported["has_data"], reported["has_user"]) == ("name: ctl\n", True, True)
    assert (reported["runs"], reported["defrags"]) == (True, False)


class Metrics(http.server.BaseHTTPRequestHandler):
    """Two of etcd's lines."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'go_threads 8\netcd_server_version{server_version="3.6.14"} 1\n')

    def log_message(self, *_):
        pass


def test_running_member_says_its_version(look):
    with http.server.HTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert look(metrics=f"http://127.0.0.1:{server.server_port}/metrics")["version"] == "3.6.14"
