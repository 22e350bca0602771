"""Tries requests at a user's Kubernetes, as a program of the standard library alone: tests bring it to nodes.

kubernetes.py MASTER KUBELET POD OTHER JOB TOKEN   the servers' URLs, two pods' folders, a job of the same user that is
no pod's, and a service account's token. Prints way -> what the server did: its HTTP status, `closed`, `closed after an
answer`, or `open`.
"""

import http.client
import json
import pathlib
import socket
import ssl
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

LIMIT_S = 15
MASTER, KUBELET, POD, OTHER, JOB, TOKEN = sys.argv[1:]
FOLDER = pathlib.Path(POD)


def context(certified: bool = False) -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if certified:
        made.load_cert_chain(FOLDER / "credential/tls.crt", FOLDER / "credential/tls.key")
    return made


def ask(server: str, path: str, method: str = "GET", certified: bool = False, body: Any = None, **headers: Any) -> Any:
    link = http.client.HTTPSConnection(urlsplit(server).netloc, timeout=LIMIT_S, context=context(certified))
    reported = {key.replace("_", "-"): value for key, value in headers.items()}
    try:
        link.request(method, path, body and json.dumps(body), {"Content-Type": "application/json", **reported})
        return str(link.getresponse().status)
    except (ssl.SSLError, ConnectionError):
        return "closed"


def holder(server: str, path: str, method: str = "GET", body: Any = None, **headers: Any) -> Any:
    return ask(server, path, method, body=body, Authorization=f"Bearer {TOKEN}", **headers)


def say(*frames: bytes, certified: bool = True) -> Any:
    """Speak on the channel; return whether the kubelet hangs up."""
    where = json.loads((FOLDER / "kubelet.json").read_text())
    heard = 0
    try:
        plain = socket.create_connection((where["address"], where["port"]), LIMIT_S)
        with plain, context(certified).wrap_socket(plain) as link:
            for frame in frames:
                link.sendall(frame)
            while part := link.recv(1 << 16):
                heard += len(part)
    except TimeoutError:
        return "open"
    except (ssl.SSLError, ConnectionError):
        pass
    return "closed after an answer" if heard else "closed"


def frame(kind: int, body: bytes, length: int | None = None) -> bytes:
    return struct.pack(">IB", length or len(body) + 1, kind) + body


def message(**content: Any) -> bytes:
    return frame(0, json.dumps(content).encode())


def hello(**changes: Any) -> bytes:
    own = json.loads((FOLDER / "job.json").read_text())["job"]
    fields = {"type": "hello", "version": 1, "uid": FOLDER.name, "job": own, "node": "x", "has_plan": True}
    return message(**{**fields, **changes})


EXEC = "/exec/default/web/web?command=id&output=1"
UPGRADE: dict[str, Any] = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
UPGRADE |= {"Sec_WebSocket_Key": "x" * 22 + "==", "Sec_WebSocket_Protocol": "v5.channel.k8s.io"}
BINDING = {
    "metadata": {"name": "attack"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
}
SPACE = "/api/v1/namespaces/default"
WAYS = {
    "nothing": {
        "API server": lambda: ask(MASTER, "/api/v1/secrets"),
        "API server, invented token": lambda: ask(MASTER, "/api/v1/secrets", Authorization="Bearer x.y.z"),
        "API server, password": lambda: ask(MASTER, "/api/v1/secrets", Authorization="Basic YWRtaW46YWRtaW4="),
        "kubelet": lambda: ask(KUBELET, "/pods"),
        "kubelet, invented token": lambda: ask(KUBELET, "/pods", Authorization="Bearer x.y.z"),
        "kubelet, exec": lambda: ask(KUBELET, EXEC, **UPGRADE),
        "channel": lambda: say(hello(), certified=False),
    },
    "pod": {
        "API server": lambda: ask(MASTER, "/api/v1/pods", certified=True),
        "kubelet": lambda: ask(KUBELET, "/pods", certified=True),
        "another pod": lambda: say(hello(uid=pathlib.Path(OTHER).name)),
        "another job": lambda: say(hello(job=JOB)),
        "option of scancel": lambda: say(hello(job="--me")),
        "no hello": lambda: say(message(type="report", sequence=1, containers={})),
        "huge frame": lambda: say(frame(0, b"", 2**31)),
        "long message": lambda: say(*[frame(2, b" " * 1_000_000)] * 3),
        "deep message": lambda: say(frame(0, b"[" * 500_000)),
        "report of another shape": lambda: say(hello(), message(type="report", sequence=2**40, containers={"web": 7})),
    },
    "account": {
        "secrets": lambda: holder(MASTER, "/api/v1/secrets"),
        "nodes": lambda: holder(MASTER, "/api/v1/nodes"),
        "pods": lambda: holder(MASTER, f"{SPACE}/pods", "POST", {"metadata": {"name": "x"}, "spec": {}}),
        "token": lambda: holder(MASTER, f"{SPACE}/serviceaccounts/default/token", "POST", {"spec": {}}),
        "exec": lambda: holder(MASTER, f"{SPACE}/pods/web/exec?command=id&stdout=1", **UPGRADE),
        "binding": lambda: holder(MASTER, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "POST", BINDING),
        "impersonation": lambda: holder(MASTER, "/api/v1/secrets", Impersonate_User="admin"),
        "kubelet": lambda: holder(KUBELET, "/pods"),
        "kubelet, exec": lambda: holder(KUBELET, EXEC, **UPGRADE),
        "kubelet, logs": lambda: holder(KUBELET, "/containerLogs/default/web/web"),
    },
}

if __name__ == "__main__":
    with ThreadPoolExecutor(4) as pool:
        begun = {kind: {name: pool.submit(way) for name, way in ways.items()} for kind, ways in WAYS.items()}
    print(json.dumps({kind: {name: one.result() for name, one in ways.items()} for kind, ways in begun.items()}))
