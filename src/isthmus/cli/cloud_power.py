"""The programs that slurmctld, and a timer, run for nodes of a cloud: the composition root.

    isthmus-cloud-resume NODES     ResumeProgram
    isthmus-cloud-suspend NODES    SuspendProgram
    isthmus-cloud-fail NODES       ResumeFailProgram
    isthmus-cloud-check            reconciliation, by the timer

They run as slurmctld's user and log to the journal (`journalctl -t isthmus-cloud`). openstacksdk is the distribution's:
only the controller needs it, while the nodes' lock file is for all nodes.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isthmus.clients.slurm import nodes as slurm
from isthmus.clients.slurm.commands import SlurmError
from isthmus.node.cloud import CloudTokens

if TYPE_CHECKING:
    from isthmus.cloud.power.power import Power

DISTRIBUTION = "/usr/lib/python3/dist-packages"
LOG = logging.getLogger("isthmus-cloud")


def resume() -> None:
    """Start nodes."""
    _run(lambda power, names: power.resume(names), "it was not started")


def suspend() -> None:
    """Delete nodes' servers; the timer retries failures."""
    _run(lambda power, names: power.suspend(names))


def fail() -> None:
    """Fail nodes."""
    _run(lambda power, names: power.fail(names), "it did not join")


def check() -> None:
    """Reconcile what a killed run left."""
    _run(lambda power, _: power.reconcile())


def _run(verb: Callable[[Power, Sequence[str]], bool], lost: str = "") -> None:
    """Run an action; where it raises, its nodes are set DOWN with the reason `lost`."""
    _log()
    names: list[str] = []
    try:
        names = slurm.host_names(sys.argv[1]) if sys.argv[1:] else []
        sys.exit(0 if verb(_power(), names) else 1)
    except Exception as error:
        # Any error: slurmctld only sees an exit status, and its nodes must not stay in power-up.
        LOG.exception("%s %s broke off", os.path.basename(sys.argv[0]), " ".join(sys.argv[1:]))
        if lost and names:
            _down(names, f"{lost}: {error}")
        sys.exit(1)


def _power() -> Power:
    sys.path.append(DISTRIBUTION)
    from isthmus.cloud.power.power import Outside, Power
    from isthmus.cloud.power.settings import STATE, load

    settings = load()
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(settings.clouds)
    return Power(settings, Outside(slurm, CloudTokens(), LOG.info, STATE))


def _down(names: Sequence[str], why: str) -> None:
    reason = f"isthmus: cloud: {' '.join(why.split())[:200]}"
    try:
        slurm.update_nodes(names, State="DOWN", Reason=reason)
    except SlurmError:
        LOG.exception("%s could not be taken out of service", ",".join(names))


def _log() -> None:
    handler: logging.Handler = logging.StreamHandler()
    if os.path.exists("/dev/log"):
        handler = logging.handlers.SysLogHandler("/dev/log", logging.handlers.SysLogHandler.LOG_DAEMON)
        handler.ident = "isthmus-cloud: "
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", handlers=[handler])
    # These log URLs of the API at each call.
    for noisy in ("keystoneauth", "openstack", "stevedore", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
