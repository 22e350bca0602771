"""The API server's clients ask again when it says so, over real TLS."""

import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.clients.kube.errors import KubeError
from tests.support.files import certificates


class _Server(HTTPServer):
    busy = 0
    asked = 0


class _Busy(BaseHTTPRequestHandler):
    """Says `busy` times that its storage begins, as for a kind that was defined just now."""

    server: _Server

    def do_GET(self) -> None:
        self.server.asked += 1
        status, body = (200, b"{}") if self.server.asked > self.server.busy else (429, b'{"message": "begins"}')
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def server():
    return _Server(("127.0.0.1", 0), _Busy)


@pytest.fixture
def api(server, tmp_path):
    pki = tmp_path / "pki"
    certificates.write(pki)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki / "etcd.crt", pki / "etcd.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    access = Access(f"https://127.0.0.1:{server.server_port}", pki / "ca.crt", pki / "client.crt", pki / "client.key")
    yield ApiServer(access)
    server.shutdown()
    server.server_close()


def test_it_asks_again(api, server):
    server.busy = 3
    assert (api.get("/apis/a.example/v1/things"), server.asked) == ({}, 4)


def test_it_does_not_ask_for_ever(api, server):
    server.busy = 100
    with pytest.raises(KubeError, match="begins") as error:
        api.get("/apis/a.example/v1/things")
    assert (error.value.status, server.asked) == (429, 11)
