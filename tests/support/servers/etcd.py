"""Real etcd for tests: TLS on both sides, users with passwords, members that stop, die and come back."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path

import requests

from isthmus.artifacts.main import run as obtain
from isthmus.clients.etcd.store import Access, Etcd
from isthmus.clients.etcd.wire import prefix_range
from tests.repo.tree import ROOT
from tests.support.files import certificates
from tests.support.files.releases import arguments
from tests.support.wait import wait

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isthmus"
ORDER = ["cache", "mirror", "upstream", "build"]
PASSWORDS = {"root": "roots", "networkd": "networkds", "flannel": "flannels"}
PREFIX, FLANNEL_PREFIX = "/isthmus/test/network/", "/isthmus/test/flannel/"
HEARTBEATS_PREFIX, WIREGUARD_PREFIX = "/isthmus/test/heartbeats/", "/isthmus/test/wireguard/"
GRANTS = {"networkd": (PREFIX, HEARTBEATS_PREFIX, WIREGUARD_PREFIX), "flannel": (FLANNEL_PREFIX,)}
# For benchmarks, where tests would rather not wait: it syncs its disk and is silent as long as the role's etcd.
AS_DEPLOYED = ("--unsafe-no-fsync=false", "--watch-progress-notify-interval=10s")

# The flag's name in 3.5.
NOTIFY = {"etcd-before": "experimental-watch-progress-notify-interval"}


@cache
def program(name: str) -> str:
    """Return the path of a program of the artifacts table; obtained as the deployer does."""
    wanted = arguments(ROOT / "artifacts.yml", CACHE, programs=[name], order=ORDER, jobs=0, memory_mib=6144)
    result = obtain(wanted, print)
    assert not result.get("failed"), result
    return result["programs"][name]["path"]


# Each of pytest's workers hands out ports of its own, and none that the kernel would give to a client meanwhile: below
# net.ipv4.ip_local_port_range. Where two runs share a machine, they begin at different places.
_FIRST_PORT, _PORTS = 20_000, 2_000
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_places = count(os.getpid())


def free_port() -> int:
    """Return a port that nobody listens on, and that no other call is given."""
    while True:
        port = _FIRST_PORT + _WORKER * _PORTS + next(_places) % _PORTS
        with suppress(OSError), socket.create_server(("", port)):
            return port


@dataclass
class Member:
    """One etcd; its data outlives its process.

    Attributes:
        program: of artifacts.yml, such as `etcd-after`; another one from the next start on.
    """

    name: str
    folder: Path
    client_port: int = field(default_factory=free_port)
    peer_port: int = field(default_factory=free_port)
    address: str = "127.0.0.1"
    process: subprocess.Popen[bytes] | None = None
    program: str = "etcd"

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"https://{self.address}:{self.client_port}"

    @property
    def peer(self) -> str:
        """Where the other members find it."""
        return f"https://{self.address}:{self.peer_port}"

    def start(self, cluster: str, *extra: str) -> None:
        """Start it; it may wait for others."""
        tls = self.folder / "tls"
        flags = {
            "name": self.name,
            "data-dir": str(self.folder / self.name),
            "listen-client-urls": self.endpoint,
            "advertise-client-urls": self.endpoint,
            "listen-peer-urls": self.peer,
            "initial-advertise-peer-urls": self.peer,
            "initial-cluster": cluster,
            "auth-token": f"jwt,pub-key={tls}/token.pub,priv-key={tls}/token.key,sign-method=ES256,ttl=5m",
            "bcrypt-cost": "4",
            "unsafe-no-fsync": "true",
            NOTIFY.get(self.program, "watch-progress-notify-interval"): "100ms",
            "logger": "zap",
        }
        for kind in ("", "peer-"):
            pair = {"cert-file": f"{tls}/etcd.crt", "key-file": f"{tls}/etcd.key", "client-cert-auth": "true"}
            flags |= {f"{kind}{key}": value for key, value in {**pair, "trusted-ca-file": f"{tls}/ca.crt"}.items()}
        words = [f"--{key}={value}" for key, value in flags.items()]
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen([program(self.program), *words, *extra], stdout=log, stderr=log)

    def stop(self, *, kill: bool = False) -> None:
        """Stop it, or let it die."""
        if self.process is not None:
            (self.process.kill if kill else self.process.terminate)()
            self.process.wait(30)
            self.process = None


@dataclass
class Cluster:
    """Members that know one another."""

    folder: Path
    members: list[Member]

    @property
    def known(self) -> str:
        """What each member knows of the others."""
        return ",".join(f"{member.name}={member.peer}" for member in self.members)

    def access(self, user: str = "networkd", **changes: object) -> Access:
        """Return how a user reaches it."""
        tls = self.folder / "tls"
        given = {
            "endpoints": tuple(member.endpoint for member in self.members),
            "ca": tls / "ca.crt",
            "certificate": tls / "client.crt",
            "key": tls / "client.key",
            "user": user,
            "password": PASSWORDS.get(user, ""),
        }
        return Access(**{**given, **changes})  # type: ignore[arg-type]

    def log(self, member: Member) -> str:
        """Return what a member has written."""
        return (self.folder / f"{member.name}.log").read_text()

    def start(self, *extra: str) -> None:
        """Start all members and wait until one may write."""
        for member in self.members:
            member.start(self.known, *extra)
        self.wait_for_leader()

    def wait_for_leader(self) -> None:
        """Wait until a member may write."""
        wait(lambda: any(map(self.is_healthy, self.members)), timeout_s=90, interval_s=0.05)

    def is_healthy(self, member: Member) -> bool:
        """Return whether a member can write."""
        access = self.access()
        pair = (str(access.certificate), str(access.key))
        try:
            return requests.get(f"{member.endpoint}/health", verify=str(access.ca), cert=pair, timeout=2).ok
        except requests.RequestException:
            return False

    def stop(self) -> None:
        """Stop all members."""
        for member in self.members:
            member.stop()

    def enable_auth(self) -> None:
        """Make the users and let nobody else in."""
        etcd = Etcd(self.access(user=""))
        for name, password in PASSWORDS.items():
            etcd.call("auth/user/add", {"name": name, "password": password})
            etcd.call("auth/role/add", {"name": name})
            etcd.call("auth/user/grant", {"user": name, "role": name})
        for name, prefixes in GRANTS.items():
            for prefix in prefixes:
                etcd.call("auth/role/grant", {"name": name, "perm": _both_ways(prefix)})
        etcd.call("auth/enable", {})
        etcd.close()


def _both_ways(prefix: str) -> dict[str, str]:
    return {"permType": "READWRITE", **prefix_range(prefix)}


def new_cluster(folder: Path, size: int = 1, address: str = "127.0.0.1") -> Cluster:
    """Make certificates and members at an address of this machine; nothing runs yet."""
    certificates.write(folder / "tls", address)
    return Cluster(folder, [Member(f"m{number}", folder, address=address) for number in range(size)])


@contextmanager
def running(folder: Path, *flags: str, size: int = 1, users: bool = True) -> Iterator[Cluster]:
    """Give a cluster that runs, with its users or open to everybody, and stop it.

    Args:
        folder: takes certificates and data.
        flags: more of etcd's own.
        size: number of members.
        users: whether they are made, and nobody else let in.
    """
    cluster = new_cluster(folder, size)
    try:
        cluster.start(*flags)
        if users:
            cluster.enable_auth()
        yield cluster
    finally:
        cluster.stop()
