"""The service isthmus-joind: the composition root."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import ssl
from pathlib import Path

from isthmus.node.service.doors import Bounds, Doors
from isthmus.node.service.records import CA, SETTINGS, STATE, Records
from isthmus.node.service.server import Service
from isthmus.support.aio.serving import web
from isthmus.support.notify import notify

_HANDSHAKE_S = 5


def main() -> None:
    """Serve until systemd says that it is enough."""
    parser = argparse.ArgumentParser(prog="isthmus-joind", description="Lets nodes of the image join this cluster.")
    parser.add_argument("--listen", required=True, help="address")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tls", type=Path, default=Path("/etc/isthmus/tls/joind"), help="of .crt and .key")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(f"{options.tls}.crt", f"{options.tls}.key")
    server = await serve(Service(Records(SETTINGS, STATE), CA, Bounds()), context, options.listen, options.port)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    notify("READY=1")
    await ended.wait()
    server.close()


async def serve(
    service: Service, context: ssl.SSLContext, address: str, port: int, bounds: Bounds | None = None
) -> asyncio.Server:
    """Listen, behind the doors."""
    runner = web.AppRunner(service.application(), access_log=None, keepalive_timeout=15)
    await runner.setup()
    assert runner.server is not None  # noqa: S101 - setup has made it
    doors = Doors(runner.server, bounds or Bounds())
    loop = asyncio.get_running_loop()
    return await loop.create_server(doors, address, port, ssl=context, ssl_handshake_timeout=_HANDSHAKE_S)
