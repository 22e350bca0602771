"""A pod's volumes."""

import base64

import pytest

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.translate.resources import demand
from isthmus.kubelet.volumes import registry
from isthmus.model.pod_inputs import TokenRequest
from isthmus.podproto.plan import File, Volume, to_json
from isthmus.podproto.reasons import Reason
from tests.support.pods.objects import SETTINGS, container, pod, resolved

MAPS = {"conf": {"data": {"b": "2", "a": "1"}, "binaryData": {"z": base64.b64encode(b"\0").decode()}}}
SECRETS = {"login": {"data": {"key": base64.b64encode(b"secret").decode()}}}
CLAIMS = {
    "data": {"spec": {"hostPath": {"path": "/home/alice/data", "type": "DirectoryOrCreate"}}},
    "made": {
        "metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": "isthmus/home"}},
        "spec": {"hostPath": {"path": "/home/alice/.isthmus/volumes/1"}},
    },
    "fast": {"spec": {"local": {"path": "/scratch/1"}}},
    "far": {"spec": {"nfs": {"server": "x", "path": "/"}}},
}
TOKENS = {TokenRequest(): "token", TokenRequest("vault", 600): "other"}


def volume(spec, **fields):
    whole = pod(container(resources={"limits": {"cpu": "2"}}), volumes=[{"name": "v", **spec}], **fields)
    whole["metadata"]["annotations"] = {"note": 'say "hi"\nä', "a": "b"}
    known = resolved(config_maps=MAPS, secrets=SECRETS, volumes=CLAIMS, tokens=TOKENS)
    [found] = registry.plan(whole, demand(whole, SETTINGS), known)
    return found


def claims(spec):
    return registry.wanted(pod(volumes=[{"name": "v", **spec}])).claims


def files(*found):
    return Volume("v", "files", files=tuple(File(*one) for one in found))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"emptyDir": {}}, Volume("v", "dir")),
        ({"emptyDir": {"sizeLimit": "1Mi"}}, Volume("v", "dir", size_bytes=2**20)),
        ({"emptyDir": {"medium": "Memory"}}, Volume("v", "memory")),
        ({"emptyDir": {"medium": "Memory", "sizeLimit": "0"}}, Volume("v", "memory")),
        ({"hostPath": {"path": "/data"}}, Volume("v", "host", path="/data")),
        *(
            ({"hostPath": {"path": "/d", "type": kind}}, Volume("v", "host", path="/d", host_type=kind))
            for kind in ("Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice")
        ),
        (
            {"persistentVolumeClaim": {"claimName": "data"}},
            Volume("v", "host", path="/home/alice/data", host_type="DirectoryOrCreate"),
        ),
        ({"persistentVolumeClaim": {"claimName": "fast"}}, Volume("v", "host", path="/scratch/1")),
        ({"image": {"reference": "app"}}, Volume("v", "image", path="/images/sha256-1.squashfs")),
    ],
)
def test_folder_is_where_the_pod_says(spec, expected):
    assert volume(spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"configMap": {"name": "conf"}}, [("a", 0o644, b"1"), ("b", 0o644, b"2"), ("z", 0o644, b"\0")]),
        (
            {"configMap": {"name": "conf", "defaultMode": 0o600, "items": [{"key": "a", "path": "x/y"}]}},
            [("x/y", 0o600, b"1")],
        ),
        ({"configMap": {"name": "conf", "items": [{"key": "a", "path": "x", "mode": 0}]}}, [("x", 0, b"1")]),
        ({"configMap": {"name": "none", "optional": True}}, []),
        ({"configMap": {"name": "conf", "optional": True, "items": [{"key": "no", "path": "x"}]}}, []),
        ({"secret": {"secretName": "login"}}, [("key", 0o644, b"secret")]),
        ({"secret": {"secretName": "login", "defaultMode": 0o400}}, [("key", 0o400, b"secret")]),
        ({"secret": {"secretName": "none", "optional": True}}, []),
        (
            {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            [("l", 0o644, b'app="web"')],
        ),
        (
            {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.annotations"}}]}},
            [("n", 0o644, 'a="b"\nnote="say \\"hi\\"\\nä"'.encode())],
        ),
        (
            {
                "downwardAPI": {
                    "defaultMode": 0o440,
                    "items": [{"path": "c", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu"}}],
                }
            },
            [("c", 0o440, b"2")],
        ),
    ],
)
def test_files_have_content_and_mode(spec, expected):
    assert volume(spec) == files(*expected)


def test_projected_sources_lie_side_by_side_and_the_last_wins():
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"serviceAccountToken": {"path": "vault", "audience": "vault", "expirationSeconds": 600}},
        {"configMap": {"name": "conf", "items": [{"key": "a", "path": "ca.crt"}]}},
        {"secret": {"name": "login", "items": [{"key": "key", "path": "ca.crt", "mode": 0o400}]}},
        {"secret": {"name": "none", "optional": True}},
        {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    found = volume({"projected": {"sources": sources, "defaultMode": 0o640}})
    assert found == files(
        ("token", 0o640, b"token"), ("vault", 0o640, b"other"), ("ca.crt", 0o400, b"secret"), ("ns", 0o640, b"shop")
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found; create it'),
        ({"secret": {"secretName": "none"}}, 'secret "none" not found; create it'),
        ({"configMap": {"name": "conf", "items": [{"key": "no", "path": "x"}]}}, "has no key 'no'; add it"),
        ({"persistentVolumeClaim": {"claimName": "none"}}, 'persistentvolumeclaim "none" is not bound'),
        ({"persistentVolumeClaim": {"claimName": "far"}}, "neither hostPath nor local; use"),
        ({"ephemeral": {"volumeClaimTemplate": {}}}, '"web-v" is not bound'),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "x"}}]}}, "no service account"),
    ],
)
def test_pod_waits_for_what_is_missing(spec, message):
    with pytest.raises(UnreadyError, match=message) as caught:
        volume(spec)
    assert (caught.value.reason, caught.value.container) == (Reason.MOUNT, "")


@pytest.mark.parametrize(
    ("spec", "gid"),
    [({"emptyDir": {}}, 2000), ({"configMap": {"name": "conf"}}, 2000), ({"hostPath": {"path": "/d"}}, None)],
)
def test_group_owns_what_is_the_pods_own(spec, gid):
    assert volume(spec, securityContext={"fsGroup": 2000}).gid == gid


@pytest.mark.parametrize(
    ("claim", "read_only", "context", "expected"),
    [
        ("made", False, {"fsGroup": 2000}, (2000, False)),
        ("made", False, {"fsGroup": 2000, "fsGroupChangePolicy": "Always"}, (2000, False)),
        ("made", False, {"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch"}, (2000, True)),
        ("made", True, {"fsGroup": 2000}, (None, False)),
        ("made", False, {}, (None, False)),
        ("fast", False, {"fsGroup": 2000}, (2000, False)),
        ("data", False, {"fsGroup": 2000}, (None, False)),
    ],
)
def test_group_of_claims(claim, read_only, context, expected):
    found = volume({"persistentVolumeClaim": {"claimName": claim, "readOnly": read_only}}, securityContext=context)
    assert (found.gid, found.is_group_kept) == expected
    # Supervisors of before refuse what they do not know.
    assert ("is_group_kept" in to_json(found)) == found.is_group_kept


def test_claim_is_named_or_made():
    assert claims({"persistentVolumeClaim": {"claimName": "c"}}) == {"c"}
    assert claims({"ephemeral": {}}) == {"web-v"}
    assert claims({"emptyDir": {}}) == set()


def test_tokens_are_asked_for_once_each():
    sources = [{"serviceAccountToken": {"path": name}} for name in "ab"]
    wanted = registry.wanted(pod(volumes=[{"name": "v", "projected": {"sources": sources}}]))
    assert wanted.tokens == {TokenRequest("", 3600)}
