"""The cluster's registry, asked to take, move, remove or tell what it should not."""

from __future__ import annotations

import json
import shlex

import pytest

CREDENTIAL = ".apptainer/docker-config.json"
# No password may stand in a command line: the journal keeps those.
ASK = """
import base64, concurrent.futures, http.client, json, pathlib, sys
address, ways = sys.argv[1], json.loads(sys.argv[2])
auth = json.loads((pathlib.Path.home() / ".apptainer/docker-config.json").read_text())["auths"][address]["auth"]
user = base64.b64decode(auth).decode().split(":")[0]
def ask(who, method, path, body):
    link = http.client.HTTPSConnection(address, timeout=10)
    word = auth if who == "user" else base64.b64encode(who.replace("USER", user).encode()).decode()
    headers = {"Authorization": "Basic " + word} if who else {}
    try:
        link.request(method, path, body, headers)
        answer = link.getresponse()
        return answer.status, answer.read(2000).decode(errors="replace")
    except OSError as error:
        return 0, str(error)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(json.dumps(dict(zip(ways, pool.map(lambda way: ask(*way), ways.values())))))
"""
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"})
SITE, NEW = "/v2/isthmus/busybox", "/v2/attack/new"
WRITES = {
    f"{what} in {place}": ("user", method, repository + path, body)
    for place, repository in (("the site's repository", SITE), ("a new one", NEW))
    for what, method, path, body in (
        ("upload", "POST", "/blobs/uploads/", ""),
        ("mount", "POST", "/blobs/uploads/?mount=DIGEST&from=isthmus/busybox", ""),
        ("manifest", "PUT", "/manifests/latest", MANIFEST),
        ("delete of a manifest", "DELETE", "/manifests/DIGEST", ""),
        ("delete of a blob", "DELETE", "/blobs/DIGEST", ""),
    )
}
ASKS = {
    "stranger lists tags": ("", "GET", f"{SITE}/tags/list", ""),
    "stranger lists repositories": ("", "GET", "/v2/_catalog", ""),
    "password of its own name": ("USER:USER", "GET", "/v2/", ""),
    "password of the writer": ("isthmus:isthmus", "GET", "/v2/", ""),
    "empty password": ("USER:", "GET", "/v2/", ""),
    "traversal": ("user", "GET", "/v2/../../../etc/passwd", ""),
    "traversal in quotes": ("user", "GET", "/v2/isthmus%2f..%2f..%2f..%2fetc/manifests/passwd", ""),
    "debug": ("user", "GET", "/debug/vars", ""),
    "profile": ("user", "GET", "/debug/pprof/heap", ""),
    "metrics": ("user", "GET", "/metrics", ""),
}


@pytest.fixture(scope="module")
def busybox(controller):
    """The site's image of that name."""
    return json.loads(controller.output("cat /etc/isthmus/images.json"))["images"]["busybox"]


@pytest.fixture(scope="module")
def answers(login, attacker, busybox):
    """Way -> (status, body) of the registry to the attacker; it answers what it should."""
    if login.run_as(attacker, f"test -e ~/{CREDENTIAL} && echo there || true") != "there":
        pytest.skip("the site's registry asks for no password")
    address, digest = busybox["reference"].split("/")[0], busybox["digest"]
    ways = {"honest": ("user", "GET", f"{SITE}/tags/list", ""), **WRITES, **ASKS}
    ways = {
        name: (who, method, path.replace("DIGEST", digest), body) for name, (who, method, path, body) in ways.items()
    }
    program = f"python3 -c {shlex.quote(ASK)} {address} {shlex.quote(json.dumps(ways))}"
    found = json.loads(login.run_as(attacker, program))
    assert found["honest"][0] == 200
    return found


@pytest.mark.attack("image")
@pytest.mark.parametrize("way", WRITES)
def test_registry_takes_nothing_from_users(answers, way):
    """An upload, a mount or a removal, in a repository of the site's and in a new one."""
    assert answers[way][0] in (401, 403, 404, 405), answers[way]


@pytest.mark.attack("image")
@pytest.mark.parametrize("way", ASKS)
def test_registry_tells_nothing_it_should_not(answers, way):
    """The registry without or with a guessed password, out of its folder, and its debugging."""
    status, body = answers[way]
    assert status in (0, 301, 400, 401, 403, 404, 405), answers[way]
    assert "root:" not in body
