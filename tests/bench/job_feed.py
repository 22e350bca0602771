"""What many kubelets ask Slurm together, and how late they see a change: with isthmus-jobsd and without, in turns.

The kubelets' own loops and their real connections (TLS, munge), in one process; squeue is a program that counts. Each
pod reports every two seconds, as a flapping probe does, and its job changes every few. Needs munge, and root, who says
whose a credential is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import ssl
import tempfile
import time
from functools import partial
from pathlib import Path

from isthmus.clients import job_feed as client
from isthmus.clients import munge
from isthmus.clients.job_feed import Source
from isthmus.clients.slurm.all_jobs import AllJobs
from isthmus.clients.slurm.pod_jobs import PodJobs
from isthmus.jobs.doors import Bounds
from isthmus.jobs.hub import Hub
from isthmus.jobs.service import Service
from isthmus.kubelet.slurm.feed import Feed
from isthmus.kubelet.slurm.jobs import Jobs
from tests.bench import results
from tests.support.files import certificates
from tests.support.servers import munged

FIRST_UID = 20_000
REPORTS_S, CHANGES_S, QUIET_S = 2.0, 4.0, 15.0
# Rows have a tab between their fields; the form says what stands there instead, and the options whose rows.
SQUEUE = r"""#!/bin/sh
echo >> {folder}/asked
for word; do case $word in --format=*) form=${{word#--format=}};; --user=*) users=${{word#--user=}};; esac; done
exec awk -F '\t' -v mark="${{form%%\%*}}" -v form="$form" -v users=",$users," '
  index(users, "," $1 ",") || users == ",0," || users == ",," {{
    line = form ~ /%U/ ? mark $1 : ""
    for (field = 2; field <= NF; field++) line = line mark $field
    print line mark }}' {folder}/rows
"""
CONFIG = "#!/bin/sh\necho 'PrivateData             = none'\n"
SINFO = "#!/bin/sh\necho 'c1|main*|up|32|8192|(null)|(null)|idle'\n"


class Site:
    """A Slurm of programs, and kubelets."""

    def __init__(self, folder: Path, kubelets: int) -> None:
        self.folder = folder
        self.uids = range(FIRST_UID, FIRST_UID + kubelets)
        self.states = dict.fromkeys(self.uids, "RUNNING")
        self.changed_s: dict[int, float] = {}
        self.late_s: list[float] = []
        (folder / "bin").mkdir()
        for name, text in {"squeue": SQUEUE.format(folder=folder), "scontrol": CONFIG, "sinfo": SINFO}.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        self.write()

    def write(self) -> None:
        """Have all jobs in their states."""
        rows = (f"{uid}\t{uid}\t{state}\tc1\t1700000000\tN/A\tNone\tpod-{uid}\n" for uid, state in self.states.items())
        new = self.folder / "rows.new"
        new.write_text("".join(rows))
        new.rename(self.folder / "rows")

    def asked(self) -> int:
        """How often squeue was called."""
        path = self.folder / "asked"
        return path.stat().st_size if path.exists() else 0

    async def live(self, jobs: dict[int, Jobs]) -> None:
        """Let pods report and jobs change."""
        while True:
            began_s = time.monotonic()
            for uid in random.sample(self.uids, int(len(self.uids) * REPORTS_S / CHANGES_S)):
                self.states[uid] = "SUSPENDED" if self.states[uid] == "RUNNING" else "RUNNING"
                self.changed_s[uid] = time.monotonic()
            self.write()
            for each in jobs.values():
                each.hurry()
                await asyncio.sleep(REPORTS_S / len(self.uids))
            await asyncio.sleep(max(0.0, began_s + REPORTS_S - time.monotonic()))

    def seen(self, uid: int) -> None:
        """Note that a kubelet was notified of a change."""
        if (at_s := self.changed_s.pop(uid, None)) is not None:
            self.late_s.append(time.monotonic() - at_s)


async def measured(site: Site, feeds: dict[int, Feed], seconds: float) -> dict[str, float]:
    """Run kubelets; return what they asked and how late they saw."""
    slurm = PodJobs(site.folder)
    jobs = {uid: Jobs(slurm, feed=feeds.get(uid)) for uid in site.uids}
    for uid, each in jobs.items():
        each.watch(f"pod-{uid}", str(uid), lambda _, uid=uid: site.seen(uid))  # type: ignore[misc]
    tasks = [asyncio.create_task(each.run()) for each in jobs.values()]
    tasks += [asyncio.create_task(each.run()) for each in feeds.values()]
    tasks.append(asyncio.create_task(site.live(jobs)))
    await asyncio.sleep(QUIET_S)
    asked, used, began_s = site.asked(), _used_s(), time.monotonic()
    site.late_s.clear()
    await asyncio.sleep(seconds)
    passed_s = time.monotonic() - began_s
    found = {
        "squeue_a_second": round((site.asked() - asked) / passed_s, 2),
        "cpu_share": round((_used_s() - used) / passed_s, 3),
        "changes": len(site.late_s),
        "late_p50_s": round(results.quantile(site.late_s, 0.5), 3),
        "late_p95_s": round(results.quantile(site.late_s, 0.95), 3),
    }
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for one in jobs.values():
        one.stop()
    return found


async def with_jobsd(site: Site, tls: Path, credentials: munged.Munged, seconds: float) -> dict[str, float]:
    """Run kubelets beside a jobsd."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / "etcd.crt", tls / "etcd.key")
    # All of them come from one address.
    bounds = Bounds(burst=1000, strangers_each=1000, strangers=1000)
    hub = Hub(AllJobs(site.folder))
    service = Service(hub, context, os.getuid(), munge.opened, lambda _: True, bounds)
    source = Source("127.0.0.1", service.listen("127.0.0.1", 0), tls / "ca.crt")
    tasks = [asyncio.create_task(each) for each in (hub.run(), service.run())]
    feeds = {uid: Feed(partial(client.connect, source, credentials.of(uid))) for uid in site.uids}
    try:
        return await measured(site, feeds, seconds)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _used_s() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def main() -> None:
    """Measure in turns, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubelets", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one short turn")
    options = parser.parse_args()
    turns, seconds = (1, 8.0) if options.quick else (options.turns, options.seconds)
    found: dict[str, list[dict[str, float]]] = {"alone": [], "jobsd": []}
    with tempfile.TemporaryDirectory() as name, munged.running() as credentials:
        folder = Path(name)
        certificates.write(folder / "tls")
        credentials.put_on_path(folder / "munge")
        os.environ["PATH"] = f"{folder / 'munge'}:{os.environ['PATH']}"
        for turn in range(turns):
            for kind in found:
                place = folder / f"{kind}-{turn}"
                place.mkdir()
                site = Site(place, options.kubelets)
                run = measured(site, {}, seconds) if kind == "alone" else None
                figures = asyncio.run(run or with_jobsd(site, folder / "tls", credentials, seconds))
                print(kind, figures, flush=True)
                found[kind].append(figures)
    print(results.save("job_feed", quick=options.quick, kubelets=options.kubelets, turns=found))


if __name__ == "__main__":
    main()
