"""The service isthmus-jobsd: the composition root."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import ssl
import sys
from pathlib import Path

from isthmus.clients import munge
from isthmus.clients.slurm.all_jobs import AllJobs
from isthmus.jobs import figures, users
from isthmus.jobs.hub import Hub
from isthmus.jobs.service import Service
from isthmus.support import metrics
from isthmus.support.aio.serving import web
from isthmus.support.notify import notify

_HELP = """\
Asks Slurm for the jobs of all users' kubelets at once, and sends each kubelet what changes of its own user's. Runs on
the controller as an account without rights; `systemctl status isthmus-jobsd` shows who is there and what is asked."""


def main() -> int:
    """Serve until SIGTERM; exit status 1 for what a later start may heal."""
    parser = argparse.ArgumentParser(prog="isthmus-jobsd", description=_HELP)
    parser.add_argument("--listen", required=True, help="address for kubelets")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tls", type=Path, default=Path("/etc/isthmus/tls/jobsd"), help="of .crt and .key")
    parser.add_argument("--slurm-prefix", type=Path, default=Path("/usr"), help="where Slurm is installed")
    parser.add_argument("--metrics-port", type=int, default=0, help="on 127.0.0.1, for Prometheus; 0: none")
    parser.add_argument(
        "--users",
        type=Path,
        default=None,
        help="file for figures that users' kubelets report; without it none are kept",
    )
    options = parser.parse_args()
    logging.basicConfig(level=os.environ.get("ISTHMUS_LOG", "INFO"), format="%(levelname)s %(message)s")
    try:
        asyncio.run(_run(options))
    except (OSError, ExceptionGroup) as error:
        logging.getLogger("isthmus-jobsd").error("%s", error)
        return 1
    return 0


async def _run(options: argparse.Namespace) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(f"{options.tls}.crt", f"{options.tls}.key")
    hub = Hub(AllJobs(options.slurm_prefix))
    service = Service(hub, context, os.geteuid(), munge.opened)
    service.listen(options.listen, options.port)
    if options.metrics_port:
        await _show_metrics(hub, options.metrics_port)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    notify("READY=1")
    async with asyncio.TaskGroup() as group:
        loops = [hub.run(), service.run(), figures.export(hub)]
        loops += [users.write(hub, options.users)] if options.users else []
        tasks = [group.create_task(each) for each in loops]
        await ended.wait()
        for task in tasks:
            task.cancel()


async def _show_metrics(hub: Hub, port: int) -> None:
    async def show(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=metrics.text(figures.HubMetrics(hub)), headers={"Content-Type": metrics.CONTENT_TYPE})

    application = web.Application()
    application.router.add_get("/metrics", show)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()


if __name__ == "__main__":
    sys.exit(main())
