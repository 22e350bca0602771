"""Requests to the cluster's registry, run on a node as an ordinary user: standard library only.

    registry_attacks.py ask         ways on standard input; name -> status and words on standard output
    registry_attacks.py push NAME   an image of one small layer; its digests on standard output
    registry_attacks.py fill NAME   blobs of 1 MiB until one is refused; how many were taken, and the words

A way is [who, method, path, body]. Who is "" for nobody, "user" for a token of all that the path is about, "basic" for
the password itself, "token TEXT", "scope SCOPE..." for a token of the user's with these scopes, or "NAME:PASSWORD" for
a guess. No password stands in a command line: the journal keeps those.
"""

import base64
import concurrent.futures
import hashlib
import http.client
import json
import os
import pathlib
import sys
import time
import urllib.parse

HOME = pathlib.Path.home()
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ADDRESS = json.loads(pathlib.Path("/etc/isthmus/images.json").read_text())["registry"]
AUTH = json.loads((HOME / ".apptainer/docker-config.json").read_text())["auths"][ADDRESS]["auth"]
USER = base64.b64decode(AUTH).decode().partition(":")[0]


def request(method, path, authorization="", body=b"", kind="application/octet-stream"):
    """Ask once; return status, words and headers."""
    link = http.client.HTTPSConnection(ADDRESS, timeout=20)
    headers = {"Content-Type": kind, "Accept": MANIFEST + ", */*"}
    if authorization:
        headers["Authorization"] = authorization
    try:
        link.request(method, path, body or None, headers)
        answer = link.getresponse()
        return answer.status, answer.read(2000).decode(errors="replace"), dict(answer.getheaders())
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error), {}
    finally:
        link.close()


def token(*scopes):
    """Return `Authorization` with a token for these scopes."""
    query = urllib.parse.urlencode([("service", ADDRESS), *(("scope", scope) for scope in scopes)])
    status, words, _ = request("GET", f"/auth/token?{query}", f"Basic {AUTH}")
    return f"Bearer {json.loads(words)['token']}" if status == 200 else ""


def repository(path):
    """Return the repository that a path is about, as the user would name it."""
    name = urllib.parse.unquote(path).removeprefix("/v2/")
    for end in ("/manifests/", "/blobs/", "/tags/"):
        name = name.partition(end)[0]
    return name


def shown(who, path):
    """Return `Authorization` for a way."""
    if who == "user":
        source = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query).get("from", [])
        return token(f"repository:{repository(path)}:pull,push,delete", *(f"repository:{name}:pull" for name in source))
    if who == "basic":
        return f"Basic {AUTH}"
    kind, _, rest = who.partition(" ")
    if kind == "scope":
        return token(*rest.split(" "))
    if kind == "token":
        return f"Bearer {rest}"
    return "Basic " + base64.b64encode(who.replace("USER", USER).encode()).decode() if who else ""


def way(said):
    """Try one."""
    who, method, path, body = said
    kind = MANIFEST if "/manifests/" in path else "application/octet-stream"
    return request(method, path, shown(who, path), body.encode(), kind)[:2]


def ask():
    """Try all of them."""
    ways = json.load(sys.stdin)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(json.dumps(dict(zip(ways, pool.map(way, ways.values()), strict=True))))


def digest(content):
    """Return a blob's name."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def blob(name, content):
    """Push a blob; return status and words."""
    path = f"/v2/{name}/blobs/uploads/"
    status, words, headers = request("POST", path, shown("user", path))
    if status != 202:
        return status, words
    place = urllib.parse.urlsplit(headers["Location"])
    where = f"{place.path}?{place.query}&digest={digest(content)}"
    return request("PUT", where, shown("user", path), content)[:2]


def push(name):
    """Push an image."""
    layer, config = (
        os.urandom(1000),
        b'{"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}',
    )
    parts = [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(layer), "size": len(layer)}]
    first = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": first, "layers": parts}).encode()
    path = f"/v2/{name}/manifests/1"
    reported = [
        blob(name, config),
        blob(name, layer),
        request("PUT", path, shown("user", path), manifest, MANIFEST)[:2],
    ]
    if [status for status, _ in reported] != [201] * 3:
        sys.exit(str(reported))
    print(json.dumps({"manifest": digest(manifest), "layer": digest(layer)}))


def fill(name):
    """Push until it is enough."""
    count, status, words = -1, 201, ""
    while status == 201 and count < 200:
        count += 1
        status, words = blob(name, os.urandom(1 << 20))
        time.sleep(0.2)
    print(json.dumps({"taken": count, "status": status, "words": words}))


if __name__ == "__main__":
    {"ask": ask, "push": push, "fill": fill}[sys.argv[1]](*sys.argv[2:])
