"""Identities of nodes, and their encryption between places."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from datetime import timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography.x509 import DNSName, IPAddress

from isthmus.clients.wireguard.device import Tunnel
from isthmus.clients.wireguard.kernel import KernelTunnel
from isthmus.clients.wireguard.program import ProgramTunnel
from isthmus.clients.wireguard.way import Way
from isthmus.model.networks.wireguard import OVERHEAD, Program, identity
from isthmus.network.encryption.follow import Encryptor, Own
from isthmus.network.encryption.identity import Authorities, Identity
from isthmus.network.encryption.records import Records
from isthmus.network.encryption.settings import EncryptionSettings
from isthmus.support import certificates
from isthmus.support.certificates import Issuer, Subject, Usage
from tests.support.files.certificates import authority
from tests.support.networks.namespaces import Namespace
from tests.support.servers.etcd import program

CA = authority("test CA")
AUTHORITIES = Authorities((CA.certificate,))
CLUSTER = "test"
MTU = 1500


def certified(
    node: str,
    address: object,
    issuer: Issuer = CA,
    usage: Usage = Usage.CLIENT,
    days: int = 1,
) -> Identity:
    """Return a node's identity, as role ca makes it."""
    key = certificates.new_key()
    names = [DNSName(identity(node)), IPAddress(IPv4Address(str(address)))]
    subject = Subject(certificates.name(), [usage], names)
    made = certificates.leaf(subject, key.public_key(), issuer, timedelta(days=days))
    return Identity(certificates.pem([made]), key)


def kernel_has_wireguard() -> bool:
    """Return whether a device can be made."""
    tried = ["unshare", "--net", "ip", "link", "add", "iwtry", "type", "wireguard"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


class Wire:
    """The encryption of one place, without threads: its device, and what makes it follow etcd."""

    def __init__(
        self, name: str, place: Namespace, address: IPv4Address, records: Records, folder: Path, by: Program
    ) -> None:
        self.name, self.place, self.address = name, place, address
        self.identity = certified(name, address)
        self.records = records
        self._folder = folder / name
        self._process: subprocess.Popen[bytes] | None = None
        self._by = by
        is_kernel = by is Program.KERNEL
        self.tunnel: Tunnel = place.do(KernelTunnel) if is_kernel else ProgramTunnel(folder=self._folder)
        self.way = place.do(Way)
        own = Own(name, address, MTU - OVERHEAD, self.identity)
        self.encryptor = Encryptor(
            own, EncryptionSettings(), self.records, AUTHORITIES, self.tunnel, self.way, grace_s=0.3, publish_s=-1
        )
        place.do(self.encryptor.shut)

    def start(self, stack: ExitStack) -> None:
        """Run the program in the place; its socket is there under another name for each."""
        if self._by is Program.WIREGUARD_GO:
            self._folder.mkdir(exist_ok=True)
            # Perhaps built first, which the place has no way out for.
            self.place.do(self._run, program("wireguard-go"))
            stack.callback(self.stop)
        self.place.do(self.tunnel.make)

    def _run(self, path: str) -> None:
        # It listens in /run/wireguard, and the place has mounts of its own.
        Path("/run/wireguard").mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", self._folder, "/run/wireguard"], check=True)
        command = [path, "--foreground", "iw0"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={"LOG_LEVEL": "verbose"})

    def stop(self) -> None:
        """End the device, and with it its key."""
        if self._by is Program.KERNEL:
            self.place.ip("link del iw0")
        if self._process:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def follow(self) -> str:
        """Read all records and make a pass; return why it failed."""
        self.encryptor.take_all(self.records.read())
        return str(self.place.do(self.encryptor.run))
