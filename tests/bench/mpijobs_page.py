"""The part of docs/results/mpi-operator.md that says how many MPIJobs ended well at the first try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.results import quantile

PAGE = Path(__file__).resolve().parents[2] / "docs/results/mpi-operator.md"
HEADING = "## At the first try"
# As many workers as the small jobs have.
FEW = 2


def publish(results: Mapping[str, Any], page: Path = PAGE) -> None:
    """Write the part again; the rest of the page stays."""
    page.write_text(f"{before(page.read_text())}\n{part(results)}", encoding="utf-8")


def before(text: str) -> str:
    """Return the page without the part."""
    return text.partition(f"\n{HEADING}\n")[0].rstrip("\n") + "\n"


def of(text: str) -> str:
    """Return the part; empty where the page has none."""
    _, found, rest = text.partition(f"\n{HEADING}\n")
    return f"\n{HEADING}\n{rest}" if found else ""


def part(results: Mapping[str, Any]) -> str:
    """Return the part of some results, as tests.bench.mpijobs keeps them."""
    machine, runs = results["machine"], results["runs"]
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["mpi"], run["workers"]), []).append(run)
    rows = [_row(mpi, workers, some) for (mpi, workers), some in groups.items()]
    problems = [f"- {run['problem']}" for run in runs if run["problem"]]
    said = (
        f"pi jobs by `python -m tests.bench.mpijobs --publish`, {results['date'][:10]}: each must succeed, with no pod"
        f" that failed, and a rank on each\nworker. Machine: {machine['cores']} cores ({machine['processor']}) for all"
        " nodes, which declare more CPUs than there are."
    )
    if any(workers > FEW for _, workers in groups):
        said += (
            " Jobs of many workers keep them busy for longer than\nthe SlurmdTimeout of inventories/local, 20 s:"
            " those ran with 300 s, the role's default."
        )
    head = "| MPI | workers | ended well | seconds, median | slowest | load of the machine |\n|---|---|---|---|---|---|"
    return "\n\n".join([HEADING, said, "\n".join([head, *rows]), *(["\n".join(problems)] if problems else [])]) + "\n"


def _row(mpi: str, workers: int, runs: Sequence[Mapping[str, Any]]) -> str:
    well = sum(not run["problem"] for run in runs)
    seconds = [run["seconds"] for run in runs]
    loads = [run["load"] for run in runs]
    median, slowest = quantile(seconds, 0.5), max(seconds)
    return (
        f"| {mpi} | {workers} | {well} of {len(runs)} | {median:.1f} | {slowest:.1f} | {min(loads)} to {max(loads)} |"
    )
