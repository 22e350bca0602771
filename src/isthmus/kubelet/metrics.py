"""What the kubelet counts and measures of itself; `/metrics` shows it.

A pod's start has four stages, each measured once: from its first sight to sbatch's answer, until Slurm runs the job,
until the supervisor reports running containers, and until the API server has a status that says so. Pods that were
there before this kubelet are left out: it has not seen when they began.
"""

from __future__ import annotations

import resource
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import Counter, Gauge, ProcessCollector

from isthmus.model.job_feed import Figures, Phase, Stage, Starts
from isthmus.support import metrics

_BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
REGISTRY = metrics.registry()


def _counter(name: str, what: str) -> Counter:
    return Counter(f"isthmus_kubelet_{name}", what, registry=REGISTRY)


SUBMISSIONS = _counter("submissions", "Jobs that the kubelet submitted.")
CANCELLATIONS = _counter("cancellations", "Times that the kubelet cancelled jobs.")
SLURM_QUESTIONS = _counter("slurm_questions", "Questions to Slurm for the pods' jobs.")
SLURM_OFFERS = _counter("slurm_offers", "Questions to Slurm for partitions, QOS and limits.")
FEED_CHANGES = _counter("feed_changes", "Changes that isthmus-jobsd sent.")
FEED_DISTRUSTS = _counter("feed_distrusts", "Times that isthmus-jobsd was not used, as Slurm said otherwise.")
SBATCH_S = metrics.histogram(REGISTRY, "isthmus_kubelet_sbatch_seconds", "How long sbatch took to answer.", _BOUNDS_S)
START_S = metrics.histogram(
    REGISTRY,
    "isthmus_kubelet_pod_start_seconds",
    "How long each stage of a pod's start took: until sbatch answered (submit), the job ran (queue), the supervisor "
    "reported running containers (report), the API server had that status (status).",
    _BOUNDS_S,
    Stage,
)
_PODS = Gauge("isthmus_kubelet_pods", "Pods, by phase.", ["phase"], registry=REGISTRY)
ProcessCollector(registry=REGISTRY)
_MEMORY = Gauge("process_max_resident_memory_bytes", "Most memory that the kubelet had, in bytes.", registry=REGISTRY)
_MEMORY.set_function(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
_UPTIME = Gauge("process_uptime_seconds", "Time since the kubelet started in seconds.", registry=REGISTRY)
_BEGAN_S = time.monotonic()
_UPTIME.set_function(lambda: round(time.monotonic() - _BEGAN_S))


class StartTimes:
    """Measures one pod's start.

    Args:
        clock: seconds that never go back.
        observe: takes the seconds of a stage.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        observe: Callable[[Stage, float], None] = lambda stage, took_s: START_S.labels(stage).observe(took_s),
    ) -> None:
        self._clock, self._observe = clock, observe
        self._left = [*Stage]
        self._since_s = clock()

    def reached(self, stage: Stage) -> None:
        """Note the end of a stage; again is no news, and without the stage before nothing more is measured."""
        if stage not in self._left:
            return
        now_s = self._clock()
        if stage is self._left.pop(0):
            self._observe(stage, now_s - self._since_s)
            self._since_s = now_s
        else:
            self.give_up()

    def give_up(self) -> None:
        """Measure no more of this pod: its start began before this kubelet, or begins once more."""
        self._left = []


def page(pods: Iterable[dict[str, Any]]) -> str:
    """Return the kubelet's page.

    Args:
        pods: of this node.
    """
    phases = _phases(pods)
    _PODS.clear()
    for phase, count in phases.items():
        _PODS.labels(phase).set(count)
    return metrics.text(REGISTRY)


def figures(pods: Iterable[dict[str, Any]]) -> Figures:
    """Return the report for isthmus-jobsd, where the user lets it be: counts, and no word of any pod.

    Args:
        pods: of this node.
    """
    phases = _phases(pods)
    known = {phase: phases[phase] for phase in Phase}
    if unknown := phases.total() - sum(known.values()):
        known[Phase.UNKNOWN] += unknown
    ended: dict[str, dict[str, float]] = {}
    for sample in (each for family in START_S.collect() for each in family.samples):
        if stage := sample.labels.get("stage"):
            ended.setdefault(stage, {})[sample.name.rpartition("_")[2]] = sample.value
    starts = {stage: Starts(int(of["count"]), round(of["sum"] * 1000)) for stage, of in ended.items()}
    return Figures(known, {Stage(stage): each for stage, each in starts.items()})


def _phases(pods: Iterable[dict[str, Any]]) -> Tally[str]:
    return Tally(str(pod.get("status", {}).get("phase", "Unknown")) for pod in pods)
