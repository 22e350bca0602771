"""Probes and hooks."""

import pytest

from isthmus.kubelet.translate.actions import action, hook, port_number, probe
from isthmus.podproto.plan import Action, ActionKind, Probe
from tests.support.pods.objects import container

ONE = container(ports=[{"containerPort": 8080, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({"exec": {"command": ["cat", "a b"]}}, Action(ActionKind.EXEC, argv=("cat", "a b"))),
        ({"httpGet": {"port": 80}}, Action(ActionKind.HTTP, port=80)),
        ({"httpGet": {"port": "http", "path": "ok?x=1"}}, Action(ActionKind.HTTP, port=8080, path="/ok?x=1")),
        (
            {"httpGet": {"port": "81", "scheme": "HTTPS", "host": "h", "httpHeaders": [{"name": "A", "value": "b"}]}},
            Action(ActionKind.HTTP, port=81, scheme="https", host="h", headers=(("A", "b"),)),
        ),
        ({"tcpSocket": {"port": "http"}}, Action(ActionKind.TCP, port=8080)),
        ({"tcpSocket": {"port": 9, "host": "h"}}, Action(ActionKind.TCP, port=9, host="h")),
        ({"grpc": {"port": 9}}, Action(ActionKind.GRPC, port=9)),
        ({"grpc": {"port": 9, "service": "s"}}, Action(ActionKind.GRPC, port=9, service="s")),
        ({"sleep": {"seconds": 5}}, Action(ActionKind.SLEEP, seconds=5)),
        ({}, None),
    ],
)
def test_action_is_read(text, expected):
    assert action(ONE, text) == expected


@pytest.mark.parametrize(("port", "number"), [(80, 80), ("80", 80), ("http", 8080), ("none", None)])
def test_port_is_a_number(port, number):
    assert port_number(ONE, port) == number


def test_probe_has_the_defaults_of_kubernetes():
    found = probe({"livenessProbe": {"exec": {"command": ["x"]}}}, "livenessProbe")
    assert found == Probe(Action(ActionKind.EXEC, argv=("x",)), 0, 10, 1, 1, 3, None)


def test_probe_says_its_own():
    numbers = {"initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 3, "successThreshold": 4}
    text = {"grpc": {"port": 9}, "failureThreshold": 5, "terminationGracePeriodSeconds": 0, **numbers}
    assert probe({"startupProbe": text}, "startupProbe") == Probe(Action(ActionKind.GRPC, port=9), 1, 2, 3, 4, 5, 0)


def test_what_is_not_there_is_none():
    assert probe(ONE, "readinessProbe") is None
    assert probe({"readinessProbe": {"periodSeconds": 1}}, "readinessProbe") is None
    assert hook(ONE, "preStop") is None


def test_hook_is_an_action():
    assert hook({"lifecycle": {"preStop": {"sleep": {"seconds": 3}}}}, "preStop") == Action(ActionKind.SLEEP, seconds=3)
