"""Figures of Slurm, under the names that slurmctld's own metrics have from 25.11 on.

So dashboards and rules stay when those take over. Three questions a time: squeue, sinfo, sdiag. As Slurm's own, jobs
are records of slurmctld: an array that waits is one, and a job that ended counts for MinJobAge. Nothing is by user:
an account's figures are enough to see whose work waits, and a thousand users would be as many series.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prometheus_client.core import Metric

from isthmus.clients.process import run
from isthmus.clients.slurm.commands import Form, options_among
from isthmus.monitoring.parts.figures import gauge, gauges

TIMEOUT_S = 30.0
# State, partition, account, CPUs, nodes.
JOB_FIELDS = ("%T", "%P", "%a", "%C", "%D")
# Partition, node, state, CPUs (allocated/idle/other/all), memory in MiB.
NODE_FORMAT = "%R|%N|%T|%C|%m"
# squeue(1), JOB STATE CODES -> Slurm's name of the figure.
JOB_STATES = {
    "BOOT_FAIL": "bootfail",
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "COMPLETING": "completing",
    "CONFIGURING": "configuring",
    "DEADLINE": "deadline",
    "FAILED": "failed",
    "NODE_FAIL": "node_failed",
    "OUT_OF_MEMORY": "outofmemory",
    "PENDING": "pending",
    "PREEMPTED": "preempted",
    "RUNNING": "running",
    "SUSPENDED": "suspended",
    "TIMEOUT": "timeout",
}
# sinfo(1), NODE STATE CODES -> what a node then counts as.
NODE_STATES: Mapping[str, tuple[str, ...]] = {
    "allocated": ("alloc",),
    "blocked": ("blocked",),
    "completing": ("completing",),
    "down": ("down",),
    "drained": ("drain", "drained"),
    "draining": ("drain", "draining"),
    "fail": ("fail",),
    "failing": ("fail",),
    "future": ("future",),
    "idle": ("idle",),
    "maint": ("maint",),
    "mixed": ("mixed",),
    "planned": ("planned",),
    "reserved": ("resv",),
    "unknown": ("unknown",),
}
NODE_COUNTS = ("noresp", *dict.fromkeys(name for names in NODE_STATES.values() for name in names))
# Behind a state: "does not answer", and words about power and reservations that are counted nowhere here.
_SILENT, _SIGNS = "*", "*~#!%$@^-+"
# sdiag(1): section -> line -> figure, its meaning, and whether it grows.
SDIAG: Mapping[str, Mapping[str, tuple[Callable[[str, str, float], Metric], str, str]]] = {
    "": {
        "Server thread count": (gauge, "slurm_server_thread_cnt", "threads of slurmctld that serve requests"),
        "Agent queue size": (gauge, "slurm_agent_queue_size", "messages to nodes that wait"),
        "Agent count": (gauge, "slurm_agent_cnt", "agents that send them"),
        "Agent thread count": (gauge, "slurm_agent_thread_cnt", "threads of those"),
        "DBD Agent queue size": (gauge, "slurm_slurmdbd_queue_size", "records that wait for slurmdbd"),
        "Jobs submitted": (gauge, "slurm_sdiag_jobs_submitted", "jobs submitted since the last reset (midnight UTC)"),
        "Jobs started": (gauge, "slurm_sdiag_jobs_started", "jobs started since then"),
        "Jobs completed": (gauge, "slurm_sdiag_jobs_completed", "jobs completed since then"),
        "Jobs canceled": (gauge, "slurm_sdiag_jobs_canceled", "jobs canceled since then"),
        "Jobs failed": (gauge, "slurm_sdiag_jobs_failed", "jobs that failed to start since then"),
    },
    "Main schedule statistics (microseconds)": {
        "Last cycle": (gauge, "slurm_schedule_cycle_last", "time of the last scheduling cycle, in microseconds"),
        "Max cycle": (gauge, "slurm_schedule_cycle_max", "the longest since the last reset"),
        "Mean cycle": (gauge, "slurm_sched_mean_cycle", "the mean since the last reset"),
        "Last queue length": (gauge, "slurm_schedule_queue_len", "jobs that the last cycle looked at"),
    },
    "Backfilling stats": {
        "Last cycle": (gauge, "slurm_bf_cycle_last", "time of the last backfill cycle, in microseconds"),
        "Max cycle": (gauge, "slurm_bf_cycle_max", "the longest since the last reset"),
        "Last queue length": (gauge, "slurm_bf_queue_len", "jobs that the last backfill cycle looked at"),
        "Total backfilled jobs (since last slurm start)": (
            gauge,
            "slurm_backfilled_jobs",
            "jobs started by backfill since slurmctld started",
        ),
    },
}


def jobs(rows: Iterable[Sequence[str]]) -> Iterator[Metric]:
    """Count jobs by state, partition and account.

    Args:
        rows: fields as in JOB_FIELDS.
    """
    states: Counter[str] = Counter()
    partitions: dict[str, Counter[str]] = {}
    accounts: dict[str, Counter[str]] = {}
    cpus = nodes = 0
    for state, partition, account, job_cpus, job_nodes in rows:
        name = JOB_STATES.get(state, "")
        states[name] += 1
        for table, keys in ((partitions, partition.split(",")), (accounts, [account])):
            for key in keys:
                table.setdefault(key, Counter())[name] += 1
        if state == "RUNNING":
            cpus += _number(job_cpus)
            nodes += _number(job_nodes)
    yield gauge("slurm_jobs", "jobs that slurmctld knows", states.total())
    for name in JOB_STATES.values():
        yield gauge(f"slurm_jobs_{name}", f"of them those that are {name}", states[name])
    yield gauge("slurm_jobs_cpus_alloc", "CPUs of running jobs", cpus)
    yield gauge("slurm_jobs_nodes_alloc", "nodes of running jobs, a shared one once for each", nodes)
    for label, table in (("partition", partitions), ("account", accounts)):
        for name in ("pending", "running"):
            values = {key: float(counts[name]) for key, counts in table.items()}
            yield gauges(f"slurm_{label}_jobs_{name}", f"jobs by {label} that are {name}", label, values)


def nodes(output: str) -> Iterator[Metric]:
    """Count nodes by state and partition, and give each one's CPUs; of a node in several partitions one line counts.

    Raises:
        ValueError: it is no answer of sinfo in NODE_FORMAT.
    """
    seen: dict[str, tuple[str, list[int], int]] = {}
    partitions: Counter[str] = Counter()
    for line in output.splitlines():
        partition, node, state, cpus, memory = line.split("|")
        partitions[partition] += 1
        seen[node] = state, [int(each) for each in cpus.split("/")], _number(memory)
    counts: Counter[str] = Counter()
    for state, _, _ in seen.values():
        counts.update(NODE_STATES.get(state.rstrip(_SIGNS), ()))
        counts["noresp"] += _SILENT in state
    yield gauge("slurm_nodes", "nodes that slurmctld knows", len(seen))
    for name in NODE_COUNTS:
        yield gauge(f"slurm_nodes_{name}", f"of them those that are {name}", counts[name])
    yield gauges("slurm_partition_nodes", "nodes of a partition", "partition", partitions)
    for place, name in ((0, "cpus_alloc"), (1, "cpus_idle"), (3, "cpus")):
        values = {node: float(cpus[place]) for node, (_, cpus, _) in seen.items()}
        yield gauges(f"slurm_node_{name}", f"a node's {name.replace('_', ', ')}", "node", values)
    memories = {node: float(memory << 20) for node, (_, _, memory) in seen.items()}
    yield gauges("slurm_node_memory_bytes", "a node's memory", "node", memories)


def scheduler(output: str) -> Iterator[Metric]:
    """Give what sdiag reports of slurmctld; lines that a version of Slurm lacks are left out."""
    section = ""
    for line in output.splitlines():
        name, _, value = line.strip().rpartition(":")
        if line.strip("*") and not line[0].isspace() and (line.endswith(":") or ":" not in line):
            section = line.removesuffix(":")
        elif (known := SDIAG.get(section, {}).get(name)) and value.strip().isdecimal():
            make, figure, meaning = known
            yield make(figure, meaning, float(value))


class Slurm:
    """Asks Slurm's commands.

    Args:
        prefix: where Slurm is installed.
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        """Ask, and give figures.

        Raises:
            ProcessError: slurmctld did not answer.
            SlurmError: the answer of squeue cannot be read.
            ValueError: that of sinfo cannot.
        """
        form = Form(JOB_FIELDS)
        yield from jobs(form.rows(self._run("squeue", *form.words, "--states=all")))
        yield from nodes(self._run("sinfo", "--all", "--noheader", "--Node", f"--format={NODE_FORMAT}"))
        yield from scheduler(self._run("sdiag"))

    def _run(self, program: str, *words: str) -> str:
        argv = [str(self._prefix / "bin" / program), *words]
        return run(argv, timeout_s=TIMEOUT_S, without=options_among(os.environ)).stdout


def _number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found.group()) if found else 0
