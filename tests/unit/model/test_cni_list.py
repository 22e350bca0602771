"""A list of CNI plugins that cannot be used is refused for what it says, with the remedy."""

import json
import stat

import pytest

from isthmus.model.networks import cni
from isthmus.model.networks.cni import Rights, list_problems, matches, programs, rights_problem

BRIDGE = {"type": "bridge", "bridge": "cni0", "isDefaultGateway": True, "ipam": {"type": "host-local"}}
LIST = {"cniVersion": "1.0.0", "name": "site", "plugins": [BRIDGE, {"type": "portmap"}]}
FLANNEL = {"type": "flannel", "delegate": {"isDefaultGateway": True, "hairpinMode": True}}
CALICO = {"type": "calico", "ipam": {"type": "calico-ipam"}, "policy": {"type": "k8s"}}


def said(document):
    return list(list_problems(document if isinstance(document, str) else json.dumps(document)))


@pytest.mark.parametrize(
    "document",
    [
        LIST,
        {**LIST, "cniVersion": "1.1.0", "cniVersions": ["1.0.0", "1.1.0"], "disableGC": True, "disableCheck": False},
        {**LIST, "cniVersion": "0.4.0", "plugins": [FLANNEL, {"type": "portmap", "capabilities": {"x": True}}]},
        {**LIST, "plugins": [CALICO]},
        {**LIST, "plugins": [{"type": "ptp", "ipam": {}}]},
    ],
)
def test_list_that_can_be_used_has_no_problem(document):
    assert said(document) == []


def plugin(**changes):
    return {**LIST, "plugins": [{**BRIDGE, **changes}]}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "longer than 65536 bytes"),
        ("[" * 60_000, "is no JSON"),
        ("[]", "is no JSON object"),
        ('"x"', "is no JSON object"),
        ({}, "cniVersion is null; use one of 0.4.0, 1.0.0, 1.1.0"),
        ({**LIST, "cniVersion": "0.3.1"}, 'cniVersion is "0.3.1"; use one of'),
        ({**LIST, "cniVersion": ["1.0.0"]}, "cniVersion is"),
        ({**LIST, "name": "../x"}, 'name is "../x"; use up to 64'),
        ({**LIST, "name": "x" * 65}, "use up to 64"),
        ({**LIST, "name": 7}, "name is 7"),
        ({**LIST, "disableCheck": "yes"}, 'disableCheck is "yes"; use true or false'),
        ({**LIST, "plugins": {}}, "plugins is no list of 1 to 16"),
        ({**LIST, "plugins": []}, "plugins is no list of 1 to 16"),
        ({**LIST, "plugins": [BRIDGE] * 17}, "plugins is no list of 1 to 16"),
        ({**LIST, "plugins": ["bridge"]}, "write an object with its type"),
        ({**LIST, "plugins": [{}]}, "a plugin's type is null"),
        (plugin(type="../../bin/sh"), "name a program of the plugins' folder, without a path"),
        (plugin(type="/bin/sh"), "without a path"),
        (plugin(type=".."), "without a path"),
        (plugin(ipam={"type": "../x"}), 'the type in ipam of "bridge" is "../x"'),
        (plugin(ipam={"type": 7}), "the type in ipam"),
        (plugin(ipam="host-local"), 'ipam of "bridge" is "host-local"; write an object'),
        ({**LIST, "plugins": [{"type": "flannel", "delegate": {"type": "a/b"}}]}, "the type in delegate"),
        (plugin(prevResult={}), "has prevResult, which the daemon gives"),
        (plugin(runtimeConfig={}), "has runtimeConfig"),
        (plugin(ipMasq=True), "has ipMasq, behind which slurmd of another node cannot answer"),
        ({**LIST, "plugins": [{"type": "flannel", "delegate": {"ipMasq": True}}]}, "has ipMasq"),
        (plugin(isDefaultGateway=False), "add isDefaultGateway: true"),
    ],
)
def test_list_that_cannot_be_used_is_refused_with_the_remedy(document, words):
    assert [problem for problem in said(document) if words in problem], said(document)


def test_programs_are_those_that_the_plugins_call_too():
    delegating = {**FLANNEL, "delegate": {"type": "ptp", "ipam": {"type": "static"}}}
    assert programs(LIST) == ["bridge", "host-local", "loopback", "portmap"]
    assert programs({"plugins": [delegating]}) == ["flannel", "loopback", "ptp", "static"]


@pytest.mark.parametrize("name", ["cni0", "veth*", "br-pods.7", "fifteen-letters"])
def test_interface_can_be_named(name):
    assert cni.is_interface(name)


@pytest.mark.parametrize("name", ["", "*", "lo", ".", "..", "a b", 'a"', "a*b", "sixteen--letters", "a/b", "cni0\n"])
def test_what_no_interface_can_be_is_none(name):
    assert not cni.is_interface(name)


def test_pattern_means_all_that_begin_so():
    assert matches("veth*", "veth1a")
    assert matches("cni0", "cni0")
    assert not matches("cni0", "cni01")
    assert not matches("veth*", "cni0")


@pytest.mark.parametrize(
    ("uid", "mode", "is_last", "words"),
    [
        (0, stat.S_IFDIR | 0o755, True, ""),
        (0, stat.S_IFDIR | 0o1777, False, ""),
        (0, stat.S_IFDIR | 0o1777, True, "chmod go-w"),
        (0, stat.S_IFDIR | 0o777, False, "chmod go-w"),
        (0, stat.S_IFDIR | 0o775, False, "chmod go-w"),
        (0, stat.S_IFREG | 0o1666, False, "chmod go-w"),
        (1001, stat.S_IFREG | 0o600, False, "chown root"),
        (0, stat.S_IFLNK | 0o777, False, "is a link"),
    ],
)
def test_rights_that_let_others_change_a_path_are_refused(uid, mode, is_last, words):
    found = rights_problem("/x", Rights(uid, mode), is_last=is_last)
    assert (words in found) if words else found == ""
