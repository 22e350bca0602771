"""Lines of any length, words for what goes wrong, and a library that is loaded with the first request alone."""

import asyncio
import errno
import os
import socket
import ssl
import subprocess
import sys

import aiohttp
import pytest

from isthmus.clients import http

KEY = aiohttp.client_reqrep.ConnectionKey("host", 443, True, True, None, None, None, None)


class Pieces:
    """An answer's content as a server sends it."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    async def readany(self):
        return self.pieces.pop(0) if self.pieces else b""


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([], []),
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b\n", b"\n\n", b"c\n"], [b"ab", b"c"]),
        ([b"x" * 300_000, b"x" * 300_000 + b"\ny\n"], [b"x" * 600_000, b"y"]),
        # What a stream that ended too early left is no line.
        ([b"a\nb"], [b"a"]),
    ],
    ids=["nothing", "two", "torn", "long", "unfinished"],
)
def test_lines_are_whole(pieces, lines):
    async def read():
        return [line async for line in http.lines(Pieces(*pieces))]

    assert asyncio.run(read()) == lines


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (aiohttp.ServerTimeoutError("Connection timeout to host https://host"), "no answer in time"),
        (TimeoutError(), "no answer in time"),
        (aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError("no match")), "TLS: ('no match',)"),
        (aiohttp.ClientConnectorSSLError(KEY, OSError(1, "unknown ca")), "TLS: [Errno 1] unknown ca"),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "Connect call failed ('::1', 443)")),
            "Connection refused",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
            "Name or service not known",
        ),
        (aiohttp.ServerDisconnectedError(), "cut off"),
        (aiohttp.ClientPayloadError("Response payload is not completed"), "cut off"),
        (aiohttp.ClientError("odd"), "ClientError: odd"),
        (aiohttp.ClientError(), "ClientError"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_reason_names_what_happened_and_no_object_of_python(error, words):
    assert http.reason(error) == words


def test_command_loads_no_http_before_it_asks():
    libraries = {"aiohttp", "requests", "urllib3", "httpx"}
    code = f"import sys; from isthmus.cli.main import parser; parser(); print({libraries} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "set()\n"


def test_library_is_loaded_without_the_hosts_authorities():
    """Of aiohttp's own context, which it makes when it is imported; what the environment says stays for others."""
    code = (
        "import os, ssl; from isthmus.support.aio import aiohttp;"
        "print(aiohttp.connector._SSL_CONTEXT_VERIFIED.cert_store_stats()['x509'], os.environ['SSL_CERT_FILE'],"
        " 'SSL_CERT_DIR' in os.environ)"
    )
    environment = os.environ | {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}
    environment.pop("SSL_CERT_DIR", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "0 /etc/ssl/certs/ca-certificates.crt False\n"
