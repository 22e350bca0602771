"""A container's variables."""

import base64

import pytest

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.translate.environment import environment, services
from isthmus.kubelet.translate.resources import demand
from isthmus.podproto.plan import Fact, Variable
from isthmus.podproto.reasons import Reason
from tests.support.pods.objects import SETTINGS, container, pod, resolved

MAPS = {"conf": {"data": {"color": "red", "cost": "$(A)$$"}}}
SECRETS = {"login": {"data": {"word": base64.b64encode(b"p$$w").decode(), "bytes": base64.b64encode(b"\xff").decode()}}}
LIMITS = {"requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}


def variables(**fields):
    """Return what the pod itself adds: image and host name are always first."""
    one = container(resources=LIMITS, **fields)
    whole = pod(one, nodeName="slurm", serviceAccountName="robot")
    found = environment(whole, one, demand(whole, SETTINGS), resolved(config_maps=MAPS, secrets=SECRETS), "web")
    assert found.variables[:2] == (Variable("PATH", "/bin"), Variable("HOSTNAME", "web"))
    return found.variables[2:]


def source(kind, **reference):
    return {"name": "X", "valueFrom": {kind: reference}}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"name": "X", "value": "1"}, "1"),
        ({"name": "X"}, ""),
        ({"name": "X", "value": "$(HOSTNAME) $(PATH)"}, "$$(HOSTNAME) $$(PATH)"),
        ({"name": "X", "value": "a \"b\" 'c' `d` \n"}, "a \"b\" 'c' `d` \n"),
        (source("configMapKeyRef", name="conf", key="color"), "red"),
        (source("configMapKeyRef", name="conf", key="cost"), "$$(A)$$$$"),
        (source("secretKeyRef", name="login", key="word"), "p$$$$w"),
        (source("secretKeyRef", name="login", key="bytes"), "\ufffd"),
        (source("fieldRef", fieldPath="metadata.name"), "web"),
        (source("fieldRef", fieldPath="metadata.namespace"), "shop"),
        (source("fieldRef", fieldPath="metadata.labels['app']"), "web"),
        (source("fieldRef", fieldPath="metadata.annotations['none']"), ""),
        (source("fieldRef", fieldPath="spec.nodeName"), "slurm"),
        (source("fieldRef", fieldPath="spec.serviceAccountName"), "robot"),
        (source("resourceFieldRef", resource="requests.cpu"), "1"),
        (source("resourceFieldRef", resource="requests.cpu", divisor="1m"), "250"),
        (source("resourceFieldRef", resource="limits.memory"), str(64 * 2**20)),
        (source("resourceFieldRef", resource="limits.memory", divisor="1Mi"), "64"),
        (source("resourceFieldRef", resource="limits.memory", divisor="0"), str(64 * 2**20)),
        (source("resourceFieldRef", resource="limits.cpu"), "1"),
        (source("resourceFieldRef", resource="limits.ephemeral-storage"), "0"),
    ],
)
def test_variable_has_value(entry, expected):
    assert variables(env=[entry]) == (Variable("X", expected),)


@pytest.mark.parametrize(
    ("path", "fact"),
    [
        ("status.podIP", Fact.POD_IP),
        ("status.podIPs", Fact.POD_IPS),
        ("status.hostIP", Fact.HOST_IP),
        ("status.hostIPs", Fact.HOST_IPS),
    ],
)
def test_addresses_are_known_on_the_node(path, fact):
    found = variables(env=[source("fieldRef", fieldPath=path), {"name": "URL", "value": "http://$(X):80"}])
    assert found == (Variable("X", fact=fact), Variable("URL", "http://$(X):80"))


def test_variables_see_those_before_them():
    entries = [{"name": name, "value": value} for name, value in (("A", "$(B)"), ("B", "1"), ("C", "$(B)$(A)"))]
    assert [one.value for one in variables(env=entries)] == ["$$(B)", "1", "1$$(B)"]


def test_env_comes_after_sources():
    found = variables(
        envFrom=[{"configMapRef": {"name": "conf"}}, {"prefix": "S_", "secretRef": {"name": "login"}}],
        env=[{"name": "color", "value": "blue $(color)"}],
    )
    assert [one.name for one in found] == ["color", "cost", "S_word", "S_bytes", "color"]
    assert found[-1].value == "blue red"


@pytest.mark.parametrize(
    "fields",
    [
        {"env": [source("configMapKeyRef", name="none", key="x", optional=True)]},
        {"env": [source("secretKeyRef", name="login", key="none", optional=True)]},
        {"envFrom": [{"configMapRef": {"name": "none", "optional": True}}]},
        {"envFrom": [{"secretRef": {"name": "none", "optional": True}}]},
    ],
)
def test_what_is_optional_may_be_missing(fields):
    assert variables(**fields) == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"env": [source("configMapKeyRef", name="none", key="x")]}, 'configmap "none" not found'),
        ({"env": [source("secretKeyRef", name="login", key="none")]}, "couldn't find key none in secret 'login'"),
        ({"envFrom": [{"configMapRef": {"name": "none"}}]}, 'configmap "none" not found'),
        ({"envFrom": [{"secretRef": {"name": "none"}}]}, 'secret "none" not found'),
    ],
)
def test_pod_waits_for_what_is_missing(fields, message):
    with pytest.raises(UnreadyError, match=message) as caught:
        variables(**fields)
    assert (caught.value.reason, caught.value.container) == (Reason.CONFIG, "app")


def service(name, namespace="shop", address="10.96.0.9", ports=({"port": 80, "name": "http"},)):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": address, "ports": list(ports)}}


def test_service_has_variables_of_kubernetes_and_of_links():
    assert dict(services(pod(), [service("my-db")])) == {
        "MY_DB_SERVICE_HOST": "10.96.0.9",
        "MY_DB_SERVICE_PORT": "80",
        "MY_DB_SERVICE_PORT_HTTP": "80",
        "MY_DB_PORT": "tcp://10.96.0.9:80",
        "MY_DB_PORT_80_TCP": "tcp://10.96.0.9:80",
        "MY_DB_PORT_80_TCP_PROTO": "tcp",
        "MY_DB_PORT_80_TCP_PORT": "80",
        "MY_DB_PORT_80_TCP_ADDR": "10.96.0.9",
    }


@pytest.mark.parametrize(
    ("links", "names"),
    [(True, {"DB_SERVICE_HOST", "KUBERNETES_SERVICE_HOST"}), (False, {"KUBERNETES_SERVICE_HOST"})],
)
def test_services_of_the_namespace_and_the_api_are_seen(links, names):
    known = [service("db"), service("far", "other"), service("kubernetes", "default"), service("bare", address="None")]
    found = services(pod(enableServiceLinks=links), known)
    assert {name for name, _ in found if name.endswith("_SERVICE_HOST")} == names


def test_address_of_version_6_is_bracketed():
    assert dict(services(pod(), [service("db", address="fd00::9")]))["DB_PORT"] == "tcp://[fd00::9]:80"


def test_pod_overrides_variables_of_services():
    one = container(env=[{"name": "DB_PORT", "value": "$(DB_PORT)/x"}])
    whole = pod(one)
    found = environment(whole, one, demand(whole, SETTINGS), resolved(services=(service("db"),)), "web")
    assert found.variables[-1] == Variable("DB_PORT", "tcp://10.96.0.9:80/x")
