"""A controller that lets nodes join, with a made-up manifest, and a host that joins below a folder."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from datetime import timedelta

from isthmus.clients.process import Finished, ProcessError
from isthmus.node import tokens
from isthmus.node.certificates import Authority, pin
from isthmus.node.main import serve
from isthmus.node.service.doors import Bounds
from isthmus.node.service.records import Records
from isthmus.node.service.server import Service
from isthmus.support.certificates import Issuer, key_pem, pem
from tests.support.fakes.dpkg import row
from tests.support.files import certificates

MANIFEST = {
    "schema": 1,
    "kind": "compute",
    "cluster": {"name": "dev", "id": "id-of-dev"},
    "release": "0123456789abcdef",
    "nodes": {"c3": "127.0.0.1", "c4": "192.0.2.4"},
    "packages": {"munge": "", "slurmd": "24.11"},
    "hostname": False,
    "groups": [],
    "users": [],
    "daemons": [],
    "files": [],
    "edits": [],
    "same": [],
    "certificates": ["networkd"],
    "certificate_days": 365,
    "renew_days": 30,
    "alternatives": {},
    "masked": [],
    "mounts": [],
    "units": [],
}


def authority(name, key=b"", lasts=timedelta(days=3650)):
    """An authority that has signed itself."""
    made = certificates.authority(name, key, lasts)
    return Authority(key_pem(made.key).encode(), pem([made.certificate]).encode())


def server_certificate(signer, address):
    """Key and certificate of a server of an address; PEM, one after the other."""
    issuer = Issuer.of(signer.certificate, signer.key)
    return "".join(certificates.pair(issuer, certificates.server(address=address))).encode()


class Controller:
    """A service that runs in a thread of its own."""

    def __init__(self, folder, bounds=None, **manifest):
        self.folder, self.now = folder, time.time()
        self.ca, self.bounds = authority("dev CA"), bounds or Bounds(rate=1000, burst=1000)
        self.records = Records(folder / "etc", folder / "var")
        for path in (self.records.settings, self.records.tokens, self.records.own, self.records.left):
            path.mkdir(parents=True)
        nodes = authority("dev nodes")
        (folder / "etc/nodes.key").write_bytes(nodes.key)
        (folder / "etc/nodes.crt").write_bytes(nodes.certificate)
        (folder / "ca.crt").write_bytes(self.ca.certificate)
        (folder / "tls").write_bytes(server_certificate(self.ca, "127.0.0.1"))
        self.publish(**manifest)

    def publish(self, **manifest):
        """Write what nodes get."""
        (self.folder / "etc/compute.json").write_text(json.dumps(MANIFEST | manifest))

    def token(self, **values):
        """Make a token."""
        given = {"names": ["c3"], "uses": 1, "expires": self.now + 60, **values}
        token, record = tokens.create(pin(self.ca.certificate), **given)
        self.records.keep_token(record)
        return token

    def __enter__(self):
        """Serve."""
        self._loop, self.port = asyncio.new_event_loop(), 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "tls")
        service = Service(self.records, self.folder / "ca.crt", self.bounds, lambda: self.now)
        self._server = self._loop.run_until_complete(serve(service, context, "127.0.0.1", 0, self.bounds))
        self.server = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        return self

    def __exit__(self, *_):
        """End it."""
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


ANSWERS = {
    "ip": json.dumps([{"addr_info": [{"local": "127.0.0.1"}]}]),
    "dpkg-query": row("munge", "0.5") + row("slurmd", "24.11"),
    "systemd-detect-virt": "podman",
}


class Commands:
    """A strict fake of a host's commands: what they answer, and which were run; others are an error."""

    def __init__(self, **answers):
        self.answers, self.ran, self.began = {**ANSWERS, **answers}, [], {}

    def __call__(self, argv, timeout_s=None, input_text=None):
        words = " ".join(argv)
        self.ran.append(words)
        if argv[0] == "systemctl":
            return Finished(self._systemctl(argv), "")
        if argv[0] not in self.answers:
            raise ProcessError(words, 127, "is not there")
        return Finished(self.answers[argv[0]], "")

    def _systemctl(self, argv):
        if argv[1] == "is-active":
            raise ProcessError(" ".join(argv), 3, "inactive")
        if argv[1] in ("start", "restart"):
            self.began[argv[-1]] = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        if argv[1] == "show":
            state, began = ("active", self.began[argv[-1]]) if argv[-1] in self.began else ("inactive", 0)
            since = f"ExecMainStartTimestampMonotonic={began}"
            return f"LoadState=loaded\nActiveState={state}\nUnitFileState=enabled\n{since}\n"
        return ""
