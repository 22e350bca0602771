"""The cluster's registry, asked to take, move, remove or show what it should not."""

from __future__ import annotations

import base64
import json
import shlex

import pytest

from tests.support.clusters.cluster import ROOT
from tests.support.clusters.registry import quota

CREDENTIAL = ".apptainer/docker-config.json"
PROGRAM = (ROOT / "tests/support/attacks/registry.py").read_text()
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"})
PLACES = {
    "the site's repository": ("/v2/isthmus/busybox", "isthmus/busybox"),
    "a new one of the site's": ("/v2/library/new", "isthmus/busybox"),
    "nobody's": ("/v2/attack/new", "isthmus/busybox"),
    "another's": ("/v2/VICTIM/private", "isthmus/busybox"),
    "a new one of another's": ("/v2/VICTIM/new", "isthmus/busybox"),
}
WRITES = {
    f"{what} in {place}": ("user", method, repository + path.replace("SOURCE", source), body)
    for place, (repository, source) in PLACES.items()
    for what, method, path, body in (
        ("upload", "POST", "/blobs/uploads/", ""),
        ("mount", "POST", "/blobs/uploads/?mount=DIGEST&from=SOURCE", ""),
        ("manifest", "PUT", "/manifests/latest", MANIFEST),
        ("delete of a manifest", "DELETE", "/manifests/DIGEST", ""),
        ("delete of a blob", "DELETE", "/blobs/DIGEST", ""),
    )
}
OWN = "scope repository:ATTACKER/x:pull,push,delete"
BOTH = f"{OWN} repository:VICTIM/private:pull,push"
READS = {
    "manifest by its tag": ("user", "GET", "/v2/VICTIM/private/manifests/1", ""),
    "manifest by its digest": ("user", "GET", "/v2/VICTIM/private/manifests/IMAGE", ""),
    "layer": ("user", "GET", "/v2/VICTIM/private/blobs/LAYER", ""),
    "tags": ("user", "GET", "/v2/VICTIM/private/tags/list", ""),
    "with a token of one's own": (OWN, "GET", "/v2/VICTIM/private/blobs/LAYER", ""),
    "as the site's account": ("isthmus:isthmus", "GET", "/auth/token", ""),
    "layer below one's own name": (OWN, "GET", "/v2/ATTACKER/x/blobs/LAYER", ""),
    "manifest below one's own name": (OWN, "GET", "/v2/ATTACKER/x/manifests/IMAGE", ""),
    "path out of one's own name": (OWN, "GET", "/v2/ATTACKER/../VICTIM/private/blobs/LAYER", ""),
    "path in quotes": (OWN, "GET", "/v2/ATTACKER%2f..%2fVICTIM/private/blobs/LAYER", ""),
    "path in quotes twice": (OWN, "GET", "/v2/VICTIM%252fprivate/blobs/LAYER", ""),
    "mount": (BOTH, "POST", "/v2/ATTACKER/x/blobs/uploads/?mount=LAYER&from=VICTIM/private", ""),
    "mount in quotes": (BOTH, "POST", "/v2/ATTACKER/x/blobs/uploads/?mount=LAYER&from=VICTIM%2fprivate", ""),
    "mount with two sources": (
        *(f"{BOTH} repository:isthmus/busybox:pull", "POST"),
        *("/v2/ATTACKER/x/blobs/uploads/?mount=LAYER&from=VICTIM/private&from=isthmus/busybox", ""),
    ),
}
PATHS = {
    f"{path} by {method}": (OWN, method, f"/v2/{path}{end}", body)
    for path in (
        "ATTACKER/../VICTIM/private",
        "ATTACKER%2f..%2fVICTIM/private",
        "/VICTIM/private",
        "VICTIM%2fprivate",
        "LOUD/x",
    )
    for method, end, body in (("POST", "/blobs/uploads/", ""), ("PUT", "/manifests/1", MANIFEST))
}
ASKS = {
    "stranger lists tags": ("", "GET", "/v2/isthmus/busybox/tags/list", ""),
    "stranger lists repositories": ("", "GET", "/v2/_catalog", ""),
    "user lists repositories": ("scope registry:catalog:*", "GET", "/v2/_catalog", ""),
    "password of its own name": ("USER:USER", "GET", "/auth/token", ""),
    "password of the writer": ("isthmus:isthmus", "GET", "/auth/token", ""),
    "empty password": ("USER:", "GET", "/auth/token", ""),
    "no password": ("", "GET", "/auth/token", ""),
    "what others have": ("", "GET", "/isthmus/v1/images", ""),
    "rights of a repository of another's": (
        *("basic", "PUT", "/isthmus/v1/access"),
        json.dumps({"repository": "VICTIM/private", "readers": "site", "users": []}),
    ),
    "rights of the site's": (
        *("basic", "PUT", "/isthmus/v1/access"),
        json.dumps({"repository": "isthmus/busybox", "readers": "private", "users": []}),
    ),
    "nginx's own question": ("basic", "GET", "/room", ""),
    "traversal": ("user", "GET", "/v2/../../../etc/passwd", ""),
    "traversal in quotes": ("user", "GET", "/v2/isthmus%2f..%2f..%2f..%2fetc/manifests/passwd", ""),
    "debug": ("basic", "GET", "/debug/vars", ""),
    "profile": ("basic", "GET", "/debug/pprof/heap", ""),
    "metrics": ("basic", "GET", "/metrics", ""),
}


FORGED = ("without a signature", "empty", "no token")


def forged(victim, registry):
    """Name -> a token for the victim's image that isthmus-tokend has not made."""
    access = [{"type": "repository", "name": f"{victim}/private", "actions": ["pull", "push"]}]
    claims = {"iss": "isthmus-tokend", "sub": victim, "aud": registry, "exp": 1 << 40, "nbf": 0, "access": access}
    parts = ({"typ": "JWT", "alg": "none"}, claims)
    unsigned = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().strip("=") for part in parts]
    return dict(zip(FORGED, (".".join([*unsigned, ""]), "", "a.b.c"), strict=True))


@pytest.fixture(scope="module")
def known(controller, login, attacker, victim):
    """Word in a way -> what it means on this site: the victim has a private image."""
    if login.run_as(attacker, f"test -e ~/{CREDENTIAL} && echo there || true") != "there":
        pytest.skip("the site's registry asks for no password")
    site = json.loads(controller.output("cat /etc/isthmus/images.json"))
    pushed = json.loads(login.run_as(victim, f"python3 -c {shlex.quote(PROGRAM)} push {victim}/private"))
    words = {"DIGEST": site["images"]["busybox"]["digest"], "IMAGE": pushed["manifest"], "LAYER": pushed["layer"]}
    yield words | {"VICTIM": victim, "ATTACKER": attacker, "LOUD": victim.upper(), "REGISTRY": site["registry"]}
    login.run_as(victim, f"skopeo delete --authfile ~/{CREDENTIAL} docker://{site['registry']}/{victim}/private:1")


def meaning(text, known):
    """Return a part of a way as it is on this site."""
    for word, meant in known.items():
        text = text.replace(word, meant)
    return text


@pytest.fixture(scope="module")
def answers(login, attacker, known):
    """Way -> (status, body) of the registry to the attacker; it answers what it should."""
    ways = {"honest": ("user", "GET", "/v2/isthmus/busybox/tags/list", "")}
    ways |= {"own": (OWN, "POST", "/v2/ATTACKER/x/blobs/uploads/", "")}
    for name, token in forged(known["VICTIM"], known["REGISTRY"]).items():
        ways[name] = (f"token {token}", "GET", "/v2/VICTIM/private/manifests/1", "")
    ways |= {**WRITES, **READS, **PATHS, **ASKS}
    meant = {name: [meaning(part, known) for part in way] for name, way in ways.items()}
    text = shlex.quote(json.dumps(meant))
    found = json.loads(login.run_as(attacker, f"printf %s {text} | python3 -c {shlex.quote(PROGRAM)} ask"))
    assert found["honest"][0] == 200
    assert found["own"][0] == 202
    return found


@pytest.mark.attack("image")
@pytest.mark.parametrize("way", WRITES)
def test_registry_takes_nothing_for_others_names(answers, way):
    """An upload, a mount or a removal, in a repository of the site's, of another user's, and in new ones."""
    assert answers[way][0] in (401, 403, 404, 405), answers[way]


@pytest.mark.attack("image")
@pytest.mark.parametrize("way", READS)
def test_private_image_is_read_by_its_owner_alone(answers, way):
    """Another's image by its tag, its digest, its layer's digest, a mount, and paths that lead there."""
    # An upload that begins (202) has mounted nothing.
    assert answers[way][0] in (301, 400, 401, 403, 404) or (answers[way][0] == 202 and "mount" in way), answers[way]


@pytest.mark.attack("image")
def test_mount_that_was_refused_gave_nothing(login, attacker, known, answers):
    """The layer of another's image below one's own name, after each mount that was tried."""
    path = meaning("/v2/ATTACKER/x/blobs/LAYER", known)
    text = shlex.quote(json.dumps({"look": [meaning(OWN, known), "GET", path, ""]}))
    found = json.loads(login.run_as(attacker, f"printf %s {text} | python3 -c {shlex.quote(PROGRAM)} ask"))
    assert found["look"][0] == 404


@pytest.mark.attack("image")
@pytest.mark.parametrize("way", PATHS)
def test_path_leads_to_nobody_elses_name(answers, way):
    """A write through `..`, quotes, a double slash and capitals."""
    assert answers[way][0] in (301, 307, 308, 400, 401, 403, 404, 405), answers[way]


@pytest.mark.attack("image")
@pytest.mark.parametrize("way", FORGED)
def test_token_that_was_made_up_opens_nothing(answers, way):
    """A token with the victim's name that nobody has signed."""
    assert answers[way][0] == 401, answers[way]


@pytest.mark.attack("image")
@pytest.mark.parametrize("way", ASKS)
def test_registry_reports_nothing_it_should_not(answers, way):
    """The registry without or with a guessed password, out of its folder, its catalog and its debugging."""
    status, body = answers[way]
    assert status in (0, 301, 400, 401, 403, 404, 405), answers[way]
    assert "root:" not in body


@pytest.fixture
def small_quota(controller, attacker):
    """A quota of 8 MiB for the attacker; the site's again afterwards."""
    with quota(controller, attacker, 8 << 20):
        yield 8
    controller.output("systemctl start isthmus-registry-gc")


@pytest.mark.attack("image")
def test_quota_is_overrun(login, attacker, known, small_quota):
    """Blob after blob until the registry refuses, in one repository and then in another."""
    for name in ("full", "fuller"):
        command = f"python3 -c {shlex.quote(PROGRAM)} fill {attacker}/{name}"
        ended = json.loads(login.run_as(attacker, command))
        # What came within a second of the last count.
        assert ended["taken"] <= small_quota + 4
        assert ended["status"] == 403
        assert "in the registry" in ended["words"]
