"""isthmus-exporter: figures of this host as files, for node exporter; the composition root. A thread for each part."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial

from isthmus.clients.process import ProcessError
from isthmus.clients.slurm.commands import SlurmError
from isthmus.monitoring import settings as exporter_settings
from isthmus.monitoring.parts import dns, figures, network, node, passed, registry, users
from isthmus.monitoring.parts.figures import Part
from isthmus.monitoring.parts.slurm import Slurm
from isthmus.monitoring.settings import Settings, SettingsError
from isthmus.network.api.protocol import RequestError
from isthmus.support.notify import notify

# Between looks that cost more than moments.
SLOW_S = 300.0
# Between two lines about a source that does not answer.
LOGGED_EVERY = 20
_SOURCES = {"etcd": passed.ETCD, "jobsd": passed.JOBSD}
_HELP = """\
Writes figures of this host, and on the controller of the cluster, as files for Prometheus' node exporter; it listens
nowhere. Settings are in /etc/isthmus/exporter.json, written by playbooks/monitoring.yml."""

_log = logging.getLogger("isthmus-exporter")


def parts(settings: Settings) -> Iterator[Part]:
    """Give what this host has figures of."""
    yield Part("node", settings.interval_s, node.quick)
    yield Part("node_slow", SLOW_S, node.slow)
    if settings.network:
        yield Part("network", settings.interval_s, network.collect)
        yield Part("dns", settings.interval_s, dns.collect)
    if settings.slurm_prefix:
        yield Part("slurm", settings.slurm_interval_s, Slurm(settings.slurm_prefix).collect)
    if settings.registry:
        yield Part("registry", settings.interval_s, partial(registry.answers, settings.registry))
        yield Part("tokend", settings.interval_s, registry.collect)
    if settings.users:
        yield Part("users", users.INTERVAL_S, users.collect)
    for name, url in settings.sources.items():
        yield Part(name, settings.interval_s, passed.Source(url, _SOURCES[name]).collect)


class Loop:
    """Asks a source again and again.

    Args:
        part: the source.
        settings: where its file goes.
    """

    def __init__(self, part: Part, settings: Settings) -> None:
        self._part = part
        self._folder = settings.folder
        self._failed = 0

    def once(self) -> None:
        """Ask, and write the file; one without figures where there is no answer."""
        try:
            metrics = list(self._part.collect())
        except (OSError, ValueError, KeyError, ProcessError, RequestError, SlurmError) as error:
            if self._failed % LOGGED_EVERY == 0:
                _log.warning("%s: no figures: %s", self._part.name, error)
            self._failed += 1
            figures.write(self._folder, self._part.name, None)
            return
        self._failed = 0
        figures.write(self._folder, self._part.name, metrics)

    def run(self, ended: threading.Event) -> None:
        """Go on until the end; an error that nobody foresaw is one."""
        try:
            while not ended.is_set():
                self.once()
                ended.wait(self._part.interval_s)
        finally:
            ended.set()


def main() -> int:
    """Run until SIGTERM; exit status 2 for settings that cannot be used, 1 where a part ended."""
    argparse.ArgumentParser(prog="isthmus-exporter", description=_HELP).parse_args()
    logging.basicConfig(level=os.environ.get("ISTHMUS_LOG", "INFO"), format="%(levelname)s %(message)s")
    try:
        settings = exporter_settings.read()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    ended, asked = threading.Event(), threading.Event()

    def end(*_: object) -> None:
        asked.set()
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    for part in parts(settings):
        threading.Thread(target=Loop(part, settings).run, args=(ended,), name=part.name, daemon=True).start()
    notify("READY=1")
    # Not without end: a signal is handled between two waits.
    while not ended.wait(60):
        pass
    return 0 if asked.is_set() else 1


if __name__ == "__main__":
    sys.exit(main())
