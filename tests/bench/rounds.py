"""Kinds of runs compared within rounds: what else the machine does then falls on all of them."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.progress import track

from tests.bench.results import quantile
from tests.bench.testbed import TestBed

SCRIPT = Path(__file__).with_name("interleaved.py")
SAMPLES = 10_000


@dataclass(frozen=True)
class Run:
    """One run: how long it took, and its last line of output."""

    seconds: float
    line: str


Round = Mapping[str, Run]


def run(cluster: TestBed, commands: Mapping[str, str], rounds: int, what: str) -> list[Round]:
    """Run shell commands on the submit host, in rounds; one more comes first, which fills caches and counts not."""
    asked = json.dumps({"rounds": rounds + 1, "commands": commands})
    cluster.run("mkdir -p isthmus-bench && cat > isthmus-bench/interleaved.py", stdin=SCRIPT.read_text())
    cluster.run("cat > isthmus-bench/asked.json", stdin=asked)
    lines = cluster.lines("python3 isthmus-bench/interleaved.py < isthmus-bench/asked.json")
    done: list[dict[str, Run]] = [{}]
    for line in track(lines, description=what, total=(rounds + 1) * len(commands)):
        reported = json.loads(line)
        if len(done[-1]) == len(commands):
            done.append({})
        done[-1][reported["name"]] = Run(reported["seconds"], reported["line"])
    return list(done[1:])


def compare(rounds: Sequence[Mapping[str, float]], baseline: str) -> dict[str, dict[str, object]]:
    """Return kind -> median, and the median ratio to the baseline of its round with a 95 % confidence interval."""
    compared: dict[str, dict[str, object]] = {}
    for kind in rounds[0]:
        compared[kind] = {"median": round(statistics.median(one[kind] for one in rounds), 4)}
        if kind != baseline:
            ratios = [one[kind] / one[baseline] for one in rounds]
            low, high = confidence(ratios)
            compared[kind] |= {
                "ratio": round(statistics.median(ratios), 3),
                "confidence_95": (round(low, 3), round(high, 3)),
            }
    return compared


def confidence(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of a median, by bootstrap (Efron's percentiles); always the same dice."""
    dice = random.Random(0)  # noqa: S311
    medians = [statistics.median(dice.choices(values, k=len(values))) for _ in range(SAMPLES)]
    return quantile(medians, 0.025), quantile(medians, 0.975)
