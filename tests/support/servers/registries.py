"""The cluster's registry on the machine that runs the tests, with the programs and the settings of the role."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from jinja2 import Environment

from isthmus.filters.images.registry import registry_settings
from tests.support.clusters.cluster import ROOT
from tests.support.files import certificates
from tests.support.wait import wait

TEMPLATES = ROOT / "roles/registry/templates"
KEEPER = "isthmus"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER_GIB = 1
WRITERS = 8


@dataclass(frozen=True)
class Answer:
    """Of the registry."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def words(self) -> str:
        """What it says."""
        return self.body.decode(errors="replace")


@dataclass
class Registry:
    """A running one.

    Attributes:
        folder: of all its files.
        port: where nginx listens.
        programs: those that run, by name.
    """

    folder: Path
    port: int
    programs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """As clients name it."""
        return f"127.0.0.1:{self.port}"

    @property
    def storage(self) -> Path:
        """Of images."""
        return self.folder / "storage"

    def password(self, user: str) -> str:
        """Of an account."""
        return f"{user}-secret"

    def basic(self, user: str) -> str:
        """Return what `Authorization` has of a user's password."""
        return "Basic " + base64.b64encode(f"{user}:{self.password(user)}".encode()).decode()

    def quotas(self, quotas: dict[str, float], reserve_gib: float = 0) -> None:
        """Let these accounts in, with so many GiB each."""
        limits = {"service": self.address, "quota_gib": 0, "quotas": quotas, "reserve_gib": reserve_gib}
        passwords = {user: self.password(user) for user in [KEEPER, *quotas]}
        path = self.folder / "tokend.json"
        path.with_suffix(".new").write_text(registry_settings(passwords, KEEPER, limits))
        path.with_suffix(".new").replace(path)

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection to nginx."""
        context = ssl.create_default_context(cafile=str(self.folder / "tls/ca.crt"))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)

    def ask(
        self, method: str, path: str, authorization: str = "", body: bytes = b"", kind: str = "application/octet-stream"
    ) -> Answer:
        """Ask once."""
        link = self.connect()
        headers = {"Content-Type": kind, "Accept": f"{MANIFEST}, */*"} | (
            {"Authorization": authorization} if authorization else {}
        )
        try:
            link.request(method, path, body or None, headers)
            answer = link.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            link.close()

    def token(self, user: str, *scopes: str) -> str:
        """Return `Authorization` with a token of a user for these scopes."""
        query = urlencode([("service", self.address), *(("scope", scope) for scope in scopes)])
        answer = self.ask("GET", f"/auth/token?{query}", self.basic(user))
        assert answer.status == 200, answer.words
        return "Bearer " + json.loads(answer.body)["token"]

    def as_user(self, user: str, method: str, path: str, body: bytes = b"", kind: str = "") -> Answer:
        """Ask as clients do, with a token for all of the repository that a path names."""
        name = path.removeprefix("/v2/").split("/manifests/")[0].split("/blobs/")[0].split("/tags/")[0]
        token = self.token(user, f"repository:{name}:pull,push,delete")
        return self.ask(method, path, token, body, kind or "application/octet-stream")

    def blob(self, user: str, repository: str, content: bytes) -> Answer:
        """Push a blob."""
        begun = self.as_user(user, "POST", f"/v2/{repository}/blobs/uploads/")
        if begun.status != 202:
            return begun
        place = urlsplit(urljoin(f"https://{self.address}/", begun.headers["location"]))
        return self.as_user(user, "PUT", f"{place.path}?{place.query}&digest={digest(content)}", content)

    def image(self, user: str, repository: str, tag: str, layer: bytes = b"layer") -> str:
        """Push an image of one layer; return the digest of its manifest."""
        config = b'{"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}'
        for content in (config, layer):
            answer = self.blob(user, repository, content)
            assert answer.status == 201, answer.words
        content = manifest(config, layer)
        answer = self.as_user(user, "PUT", f"/v2/{repository}/manifests/{tag}", content, MANIFEST)
        assert answer.status == 201, answer.words
        return digest(content)

    def share(self, user: str, repository: str, readers: str, *users: str) -> Answer:
        """Say who may pull."""
        said = {"repository": repository, "readers": readers, "users": list(users)}
        return self.ask("PUT", "/isthmus/v1/access", self.basic(user), json.dumps(said).encode())

    def overview(self, user: str) -> Any:
        """Return what a user has."""
        answer = self.ask("GET", "/isthmus/v1/images", self.basic(user))
        assert answer.status == 200, answer.words
        return json.loads(answer.body)

    def start(self, name: str) -> None:
        """Start one of the programs, and wait for its socket."""
        log = (self.folder / f"{name}.log").open("ab")
        self.programs[name] = subprocess.Popen(commands(self)[name], stdout=log, stderr=log, env=_environment())
        path = sockets(self)[name]
        wait(lambda: self._listens(name, path), timeout_s=20, interval_s=0.05)

    def stop(self, name: str) -> None:
        """Stop one of them."""
        program = self.programs.pop(name)
        program.terminate()
        program.wait(20)

    def clean(self) -> None:
        """Do what isthmus-registry-gc.service does."""
        self.start("readonly")
        self.stop("registry")
        clean = [sys.executable, "-m", "isthmus.registry.clean", str(self.storage)]
        collect = [_program("docker-registry"), "garbage-collect", str(self.folder / "registry.yml")]
        for command in (clean, collect):
            subprocess.run(command, check=True, capture_output=True, env=_environment())
        self.start("registry")
        self.stop("readonly")

    def _listens(self, name: str, path: Path | int) -> bool:
        program = self.programs[name]
        assert program.poll() is None, (self.folder / f"{name}.log").read_text()[-2000:]
        is_path = isinstance(path, Path)
        with socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as link:
            return link.connect_ex(str(path) if is_path else ("127.0.0.1", path)) == 0


def digest(content: bytes) -> str:
    """Return a blob's digest."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def manifest(config: bytes, *layers: bytes) -> bytes:
    """Return the manifest of an image."""
    kind = "application/vnd.oci.image.{}"
    parts = [
        {"mediaType": kind.format("layer.v1.tar"), "digest": digest(layer), "size": len(layer)} for layer in layers
    ]
    first = {"mediaType": kind.format("config.v1+json"), "digest": digest(config), "size": len(config)}
    return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": first, "layers": parts}).encode()


def commands(registry: Registry) -> dict[str, list[str]]:
    """Name -> the command of each program."""
    folder = str(registry.folder)
    tokend = [sys.executable, "-m", "isthmus.registry.main", "--settings", f"{folder}/tokend.json"]
    return {
        "tokend": [
            *tokend,
            "--state",
            f"{folder}/state",
            "--storage",
            f"{folder}/storage",
            "--socket",
            f"{folder}/tokend",
        ],
        "registry": [_program("docker-registry"), "serve", f"{folder}/registry.yml"],
        "readonly": [_program("docker-registry"), "serve", f"{folder}/readonly.yml"],
        "nginx": [_program("nginx"), "-e", "stderr", "-p", folder, "-c", f"{folder}/nginx.conf"],
    }


def sockets(registry: Registry) -> dict[str, Path | int]:
    """Name -> where each listens."""
    run = registry.folder / "run"
    return {
        "tokend": registry.folder / "tokend",
        "registry": run / "registry.socket",
        "readonly": run / "readonly.socket",
        "nginx": registry.port,
    }


@contextmanager
def running(folder: Path) -> Iterator[Registry]:
    """Run one, with its files in a folder whose name is short enough for sockets; alice and bob may have 1 GiB each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    registry = Registry(folder, port)
    for name in ("run", "proxy", "storage", "state/access"):
        (folder / name).mkdir(parents=True)
    certificates.write(folder / "tls")
    _configure(registry)
    registry.quotas({"alice": 1, "bob": 1, "carol": 1})
    try:
        for name in ("tokend", "registry", "nginx"):
            registry.start(name)
        yield registry
    finally:
        for name in list(registry.programs):
            registry.stop(name)


def _configure(registry: Registry) -> None:
    folder = registry.folder
    values = {
        "registry_storage_dir": folder / "storage",
        "registry_address": registry.address,
        "registry_layer_gib": LAYER_GIB,
        "_registry_endpoint": {"port": registry.port},
        "_registry_proxy_run": folder / "proxy",
        "_registry_run": folder / "run",
        "_registry_tokend_socket": folder / "tokend",
        "_registry_tokend_state": folder / "state",
        "_registry_writers": WRITERS,
    }
    environment = Environment(autoescape=False)  # noqa: S701 - no HTML
    template = environment.from_string((TEMPLATES / "config.yml.j2").read_text())
    for name in ("registry", "readonly"):
        (folder / f"{name}.yml").write_text(template.render(item=name, **values))
    text = environment.from_string((TEMPLATES / "nginx.conf.j2").read_text()).render(**values)
    text = text.replace("/etc/isthmus/tls/registry", f"{folder}/tls/etcd")
    # Root would have it work as another account, which sees none of these files.
    (folder / "nginx.conf").write_text(("user root;\n" if os.geteuid() == 0 else "") + text)


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    assert found, f"{name} is not here; `make test` installs it, see tests/support/packages.yml"
    return found


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src")}


def until_counted(registry: Registry, user: str) -> int:
    """Return the bytes that count for a user, once isthmus-tokend looks again."""
    time.sleep(1.1)
    return int(registry.overview(user)["used_bytes"])
