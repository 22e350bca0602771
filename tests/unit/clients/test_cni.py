"""CNI plugins as programs that write down what they are given: order, environment, chaining, errors."""

import json
import sys
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface

import pytest

from isthmus.clients.cni.plugins import (
    AnswerError,
    Attachment,
    ListError,
    NetworkList,
    PluginError,
    Plugins,
    Result,
    TryAgainError,
    parse_list,
)

# Answers with what lies beside it for its verb; without it, with the result before and its own name after it.
PLUGIN = f"""#!{sys.executable}
import json, os, pathlib, sys
me = pathlib.Path(sys.argv[0])
given, env = json.load(sys.stdin), {{k: v for k, v in os.environ.items() if k.startswith("CNI_")}}
with open(me.parent / "calls", "a") as calls:
    calls.write(json.dumps({{"plugin": me.name, "env": env, "given": given}}) + "\\n")
answer = me.parent / f"{{me.name}}.{{env['CNI_COMMAND']}}"
if answer.exists():
    status, text = answer.read_text().split(" ", 1)
    print(text)
    sys.exit(int(status))
if env["CNI_COMMAND"] == "ADD":
    before = given.get("prevResult", {{}})
    print(json.dumps({{**before, "by": before.get("by", []) + [me.name]}}))
"""
NETWORK = NetworkList("net", "1.0.0", ({"type": "first", "mtu": 9000}, {"type": "second"}))
POD = Attachment("pod-7", "/run/netns/pod-7")


class Folder:
    """Two plugins, what they answer, and what they were given."""

    def __init__(self, path):
        self.path = path
        self.plugins = Plugins(path)
        for name in ("first", "second"):
            (path / name).write_text(PLUGIN)
            (path / name).chmod(0o755)

    def answers(self, plugin, verb, text, status=1):
        (self.path / f"{plugin}.{verb}").write_text(f"{status} {text}")

    def calls(self):
        return [json.loads(line) for line in (self.path / "calls").read_text().splitlines()]

    def order(self):
        return [f"{call['env']['CNI_COMMAND']} {call['plugin']}" for call in self.calls()]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_add_chains_results_in_order(folder):
    assert folder.plugins.add(NETWORK, POD) == Result({"by": ["first", "second"]})
    first, second = (call["given"] for call in folder.calls())
    assert first == {"type": "first", "mtu": 9000, "cniVersion": "1.0.0", "name": "net"}
    assert second["prevResult"] == {"by": ["first"]}


def test_plugin_is_reported_by_its_environment(folder, monkeypatch):
    monkeypatch.setenv("CNI_ARGS", "K8S_POD_NAME=daemon")
    folder.plugins.add(NETWORK, POD)
    assert folder.calls()[0]["env"] == {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "pod-7",
        "CNI_NETNS": "/run/netns/pod-7",
        "CNI_IFNAME": "eth0",
        "CNI_PATH": str(folder.path),
        "CNI_ARGS": "",
    }


def test_delete_goes_backwards_with_the_last_result(folder):
    folder.plugins.delete(NETWORK, POD, Result({"by": ["both"]}))
    assert folder.order() == ["DEL second", "DEL first"]
    assert [call["given"]["prevResult"] for call in folder.calls()] == [{"by": ["both"]}] * 2


def test_check_goes_forwards_with_the_last_result(folder):
    folder.plugins.check(NETWORK, POD, Result({"by": ["both"]}))
    assert folder.order() == ["CHECK first", "CHECK second"]
    assert folder.calls()[0]["given"]["prevResult"] == {"by": ["both"]}


def test_check_is_left_out_where_the_list_says_so(folder):
    folder.plugins.check(NetworkList("net", "1.0.0", NETWORK.plugins, disable_check=True), POD, Result({}))
    assert not (folder.path / "calls").exists()


def test_failed_add_is_undone(folder):
    folder.answers("second", "ADD", '{"code": 100, "msg": "no", "details": "room"}')
    with pytest.raises(PluginError, match=r"second: ADD pod-7: no: room \(CNI error 100\)") as caught:
        folder.plugins.add(NETWORK, POD)
    assert (caught.value.code, caught.value.details) == (100, "room")
    assert folder.order() == ["ADD first", "ADD second", "DEL second", "DEL first"]


def test_failure_to_undo_does_not_hide_the_first(folder):
    folder.answers("first", "ADD", '{"code": 7, "msg": "bad configuration"}')
    folder.answers("second", "DEL", '{"code": 5, "msg": "disk"}')
    with pytest.raises(PluginError, match="bad configuration") as caught:
        folder.plugins.add(NETWORK, POD)
    assert "disk" in caught.value.__notes__[0]


def test_refusal_for_now_is_an_error_of_its_own(folder):
    folder.answers("second", "DEL", '{"code": 11, "msg": "later"}')
    with pytest.raises(TryAgainError, match="later"):
        folder.plugins.delete(NETWORK, POD)


@pytest.mark.parametrize(("text", "status"), [("panic", 2), ('["list"]', 1), ('{"msg": "no code"}', 1), ("", 0)])
def test_answer_that_is_none_is_an_error(folder, text, status):
    folder.answers("first", "ADD", text, status)
    with pytest.raises(AnswerError, match="first: ADD pod-7"):
        folder.plugins.add(NETWORK, POD)


def test_missing_plugin_is_named(folder):
    (folder.path / "second").unlink()
    with pytest.raises(AnswerError, match=r"second.*No such file"):
        folder.plugins.check(NETWORK, POD, Result({}))


@pytest.mark.parametrize(
    "ips",
    [
        [{"version": "4", "address": "10.1.2.3/24", "gateway": "10.1.2.1", "interface": 2}],
        [{"address": "fd00::3/64"}, {"address": "10.1.2.3/24", "gateway": "10.1.2.1"}],
    ],
)
def test_addresses_are_read_of_every_version(ips):
    assert Result({"ips": ips}).addresses == ((IPv4Interface("10.1.2.3/24"), IPv4Address("10.1.2.1")),)


@pytest.mark.parametrize("ips", [[{}], [{"address": "10.1.2.300/24"}], ["10.1.2.3"], 4])
def test_addresses_that_are_none_are_an_error(ips):
    with pytest.raises(AnswerError, match="makes no sense"):
        _ = Result({"ips": ips}).addresses


def test_list_is_read_and_written_alike():
    assert parse_list(json.dumps(NETWORK.written()), "x") == NETWORK


@pytest.mark.parametrize("text", ["", "[]", '{"name": "n", "cniVersion": "1.0.0", "plugins": []}', '{"plugins": [{}]}'])
def test_list_that_is_none_is_refused(text):
    with pytest.raises(ListError, match="/etc/x is no list of CNI plugins"):
        parse_list(text, "/etc/x")


def test_plugins_collect_what_no_attachment_has_where_they_know_how(folder):
    network = NetworkList("net", "1.1.0", NETWORK.plugins)
    folder.plugins.collect(network, [POD])
    assert folder.order() == ["GC first", "GC second"]
    assert folder.calls()[0]["given"]["cni.dev/valid-attachments"] == [{"containerID": "pod-7", "ifname": "eth0"}]
    assert folder.calls()[0]["env"].keys() == {"CNI_COMMAND", "CNI_PATH", "CNI_ARGS"}


@pytest.mark.parametrize("changes", [{"version": "1.0.0"}, {"disable_gc": True}])
def test_plugins_that_know_no_gc_are_not_asked(folder, changes):
    folder.plugins.collect(replace(NetworkList("net", "1.1.0", NETWORK.plugins), **changes), [POD])
    assert not (folder.path / "calls").exists()
