"""The service isthmus-tokend: the composition root."""

from __future__ import annotations

import argparse
import asyncio
import grp
import logging
import os
import signal
import sys
from pathlib import Path

from isthmus.registry.keys import KeyFileError, key
from isthmus.registry.records import Records
from isthmus.registry.service import Service
from isthmus.registry.settings import Current, SettingsError
from isthmus.registry.storage import Storage
from isthmus.registry.tokens import Signer
from isthmus.support.aio.serving import web
from isthmus.support.notify import notify

_HELP = """\
Says who may do what in the cluster's registry: gives its users tokens for what they may do, and judges each write by
their quotas. Runs on the controller behind nginx as an account without rights; `journalctl -u isthmus-tokend` has what
was refused."""


def main() -> int:
    """Serve until SIGTERM; exit status 1 for what a later start may heal."""
    parser = argparse.ArgumentParser(prog="isthmus-tokend", description=_HELP)
    parser.add_argument("--settings", type=Path, default=Path("/etc/isthmus/tokend.json"), help="accounts and quotas")
    parser.add_argument(
        "--state", type=Path, default=Path("/var/lib/isthmus-tokend"), help="of the key, and of what users say"
    )
    parser.add_argument("--storage", type=Path, required=True, help="the registry's rootdirectory")
    parser.add_argument("--socket", type=Path, default=Path("/run/isthmus-tokend/socket"), help="for nginx")
    parser.add_argument("--socket-group", default="", help="who may use it besides this account")
    options = parser.parse_args()
    logging.basicConfig(level=os.environ.get("ISTHMUS_LOG", "INFO"), format="%(levelname)s %(message)s")
    try:
        asyncio.run(_run(options))
    except (OSError, KeyError, SettingsError, KeyFileError) as error:
        logging.getLogger("isthmus-tokend").error("%s", error)
        return 1
    return 0


async def _run(options: argparse.Namespace) -> None:
    settings = Current(options.settings)
    signer = Signer(key(options.state), lambda: settings().service)
    service = Service(settings, Records(options.state / "access"), Storage(options.storage), signer)
    runner = await _serve(service, options.socket, options.socket_group)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    notify("READY=1")
    await ended.wait()
    await runner.cleanup()
    service.stop()


async def _serve(service: Service, path: Path, group: str) -> web.AppRunner:
    runner = web.AppRunner(service.application(), access_log=None, keepalive_timeout=60, shutdown_timeout=5)
    await runner.setup()
    # Nobody else for a moment either: the unit's umask is 077.
    await web.UnixSite(runner, str(path)).start()
    if group:
        os.chown(path, -1, grp.getgrnam(group).gr_gid)
        path.chmod(0o660)
    return runner


if __name__ == "__main__":
    sys.exit(main())
