"""Writes the files of the node's CoreDNS and its pods; `dns` renders them.

Only CoreDNS's group reads the users' names: the folder's group and its set-group-id bit give them to it. What pods
read as /etc/resolv.conf holds no secret.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from isthmus.model.network import State
from isthmus.model.node_network import NodePlan
from isthmus.network.dns import hostresolver
from isthmus.network.dns import records as dns
from isthmus.network.dns.hostresolver import HostResolver
from isthmus.network.dns.zones import Zones
from isthmus.network.drivers.registry import NAMES
from isthmus.support import durable

COREFILE = "Corefile"
RESOLV = ".resolv"


class NodeNames:
    """The files below the DNS folder of a node.

    Args:
        settings: how names are made, and where the folder is.
        reload: has CoreDNS read its configuration again; called after a change of it.
        resolver: by what the host's own programs come here.
        resolv_conf: the host's own.
    """

    def __init__(
        self,
        settings: dns.DnsSettings,
        reload: Callable[[], None],
        resolver: HostResolver = HostResolver.NONE,
        resolv_conf: Path = hostresolver.FILE,
    ) -> None:
        self._settings = settings
        self._reload = reload
        self._resolver = resolver
        self._resolv_conf = resolv_conf
        self._zones = Zones(settings.domain, settings.ipv6)
        self._written: dict[str, str] = {}
        self._stale = True

    def follow(self, desired: NodePlan, state: State) -> None:
        """Bring the files up to date, and remove those of legs and pods that are gone.

        Raises:
            OSError: a file cannot be written; the next call tries again.
        """
        files = self._files(desired, state)
        for name in self._present() - files.keys():
            (self._settings.folder / name).unlink(missing_ok=True)
            self._written.pop(name, None)
        reread = self._stale or self._written.get(COREFILE) != files[COREFILE]
        for name, text in files.items():
            if self._written.get(name) != text:
                durable.write(self._settings.folder / name, text, mode=0o644 if name.endswith(RESOLV) else 0o640)
                self._written[name] = text
        if reread:
            self._stale = True
            self._reload()
            self._stale = False

    def resolv_conf(self, job: int) -> Path:
        """Name the file that a job's pod here has as /etc/resolv.conf."""
        return dns.below(self._settings.folder, f"{job}{RESOLV}")

    def _files(self, desired: NodePlan, state: State) -> Mapping[str, str]:
        self._zones.follow(state)
        before = hostresolver.follow(self._resolver, self._resolv_conf)
        forwards = self._resolver is not HostResolver.RESOLVED
        settings = replace(self._settings, upstreams=self._settings.upstreams or before, forwards_hosts=forwards)
        shared = [(pod, job) for pod in desired.shared.values() if (job := state.jobs.get(pod.job))]
        bridges = {(pod.driver, pod.gateway) for pod, _ in shared}
        files = {
            COREFILE: dns.corefile(desired.legs.values(), settings, bridges),
            settings.all_hosts.name: self._zones.all_users(NAMES),
        }
        for driver in sorted({driver for driver, _ in bridges}):
            files[settings.shared_hosts(driver).name] = self._zones.all_users((driver,))
        for leg in desired.legs.values():
            files[settings.hosts(leg.uid).name] = self._zones.text(leg.uid)
        for pod in desired.pods.values():
            job, user = state.jobs[pod.job], state.users[pod.uid]
            files[self.resolv_conf(pod.job).name] = dns.resolv_conf(job, user.name, pod.gateway, settings)
        for shared_pod, job in shared:
            name = state.users[job.uid].name
            files[self.resolv_conf(job.id).name] = dns.resolv_conf(job, name, shared_pod.gateway, settings)
        return files

    def _present(self) -> set[str]:
        return set(os.listdir(self._settings.folder)) if self._settings.folder.is_dir() else set()
