"""From a pod to a plan: what concerns the whole pod, and the form in which it travels."""

import json

import pytest

from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_inputs import TokenRequest, Wanted
from isthmus.podproto.plan import to_json
from tests.support.pods.objects import UID, container, pod, resolved


@pytest.mark.parametrize(
    ("spec", "field", "expected"),
    [
        ({}, "restart_policy", "Always"),
        ({"restartPolicy": "Never"}, "restart_policy", "Never"),
        ({}, "grace_s", 30),
        ({"terminationGracePeriodSeconds": 0}, "grace_s", 0),
        ({}, "share_pid", False),
        ({"shareProcessNamespace": True}, "share_pid", True),
        ({}, "uid", UID),
        ({}, "namespace", "shop"),
        ({}, "hostname", "web"),
        ({"subdomain": "db"}, "fqdn", "web.db.shop.svc.cluster.local"),
    ],
)
def test_plan_says_what_the_pod_says(spec, field, expected):
    assert getattr(translate.plan(pod(**spec), resolved()), field) == expected


def test_plan_is_json():
    secret = {"s": {"data": {"k": "/w=="}}}
    one = container(
        livenessProbe={"httpGet": {"port": 80, "httpHeaders": [{"name": "A", "value": "b"}]}},
        lifecycle={"preStop": {"sleep": {"seconds": 1}}},
        env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
    )
    whole = pod(one, volumes=[{"name": "v", "secret": {"secretName": "s"}}], securityContext={"runAsUser": 1})
    found = json.loads(json.dumps(to_json(translate.plan(whole, resolved(secrets=secret)))))
    assert found["schema"] == 1
    assert found["volumes"][0]["files"] == [{"path": "k", "mode": 0o644, "data": "/w=="}]
    [reported] = found["containers"]
    assert reported["env"][-1] == {"name": "IP", "fact": "pod_ip"}
    assert reported["user"] == {"uid": 1, "gid": 0, "groups": []}
    assert reported["mounts"] == [{"volume": "v", "path": "/v", "sub_path": None, "read_only": False}]
    assert reported["pre_stop"]["kind"] == "sleep"
    probe = reported["liveness"]
    assert (probe["kind"], probe["port"], probe["headers"], probe["period_s"]) == ("http", 80, [["A", "b"]], 10)
    assert "action" not in probe


def test_sidecar_is_an_init_container_that_stays():
    init = [container("a"), container("b", restartPolicy="Always")]
    found = translate.plan(pod(initContainers=init), resolved())
    assert [(one.name, one.sidecar) for one in (*found.init, *found.containers)] == [
        ("a", False),
        ("b", True),
        ("app", False),
    ]


def test_wanted_is_all_that_a_pod_names():
    one = container(
        envFrom=[{"configMapRef": {"name": "m1"}}, {"secretRef": {"name": "s1"}}],
        env=[
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m2", "key": "k"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k", "optional": True}}},
        ],
    )
    sources = [{"configMap": {"name": "m4"}}, {"secret": {"name": "s4"}}, {"serviceAccountToken": {"path": "t"}}]
    volumes = [
        {"name": "1", "configMap": {"name": "m3"}},
        {"name": "2", "secret": {"secretName": "s3"}},
        {"name": "3", "projected": {"sources": sources}},
        {"name": "4", "persistentVolumeClaim": {"claimName": "c"}},
    ]
    assert translate.wanted(pod(one, volumes=volumes, initContainers=[container("i", image="other")])) == Wanted(
        images=frozenset({"app", "other"}),
        config_maps=frozenset({"m1", "m2", "m3", "m4"}),
        secrets=frozenset({"s1", "s2", "s3", "s4"}),
        claims=frozenset({"c"}),
        tokens=frozenset({TokenRequest()}),
    )


def test_update_holds_files_alone():
    claim = {"name": "c", "persistentVolumeClaim": {"claimName": "not read again"}}
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "m"}}, claim]
    found = translate.update(pod(volumes=volumes), resolved(config_maps={"m": {"data": {"k": "new"}}}))
    assert [(one.name, one.files[0].data) for one in found] == [("b", b"new")]


@pytest.mark.parametrize("kind", ["initContainers", "containers", "ephemeralContainers"])
def test_single_container_is_found_by_name(kind):
    whole = pod(container(), **{kind: [container("wanted", command=["sh"])]})
    found = translate.single(whole, "wanted", resolved())
    assert (found.argv, found.image_name) == (("sh",), "app")
    with pytest.raises(KeyError):
        translate.single(whole, "nobody", resolved())
