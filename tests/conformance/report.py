"""Pages of docs/results, of the results alone: the same rows give the same page."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.conformance.junit import Outcome
from tests.conformance.results import Row

SHOWN = 220
_GIVEN = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b([a-z]+(?:-[a-z]+)*)-\d{1,5}\b"), r"\1-<n>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b"), "<address>"),
    (re.compile(r"/(?:home|tmp|var/tmp)/\S+"), "<path>"),
)
_SIG = re.compile(r"^\[(sig-[a-z-]+)\] ")


def page(rows: Sequence[Row], kubernetes: str) -> str:
    """Write the page of Kubernetes' own cases.

    Args:
        rows: all results.
        kubernetes: the version, such as 1.36.3.
    """
    said = (
        f"This page has the results of Kubernetes' own conformance cases, version {kubernetes}, run by"
        " `make conformance` as an ordinary\nuser in the Kubernetes of `isthmus up`, several at a time. It is made of"
        f" conformance.json beside it; runs of\n{_span(rows)}. How: [Tests](../explanation/testing.md#conformance)."
    )
    return _page("Conformance", said, rows)


def operator_page(rows: Sequence[Row], version: str) -> str:
    """Write the page of the MPI Operator's own cases."""
    said = (
        f"This page has the results of the end-to-end cases of Kubeflow's MPI Operator {version}, run by"
        " `make conformance-mpi` as an\nordinary user with `isthmus workloads add mpi`, one after the other. It is"
        f" generated from results/conformance-mpi.json; runs of {_span(rows)}.\n"
        "How: [Tests](../explanation/testing.md#conformance)."
    )
    return _page("MPI Operator's cases", said, rows)


def _span(rows: Sequence[Row]) -> str:
    dates = sorted({one.date for one in rows})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def _page(title: str, said: str, rows: Sequence[Row]) -> str:
    parts = [
        f"# {title}",
        said,
        _table(("group", *Outcome), _counts(rows)),
        *_section("Failed", Outcome.FAILED, rows),
        *_section("Not applicable", Outcome.INAPPLICABLE, rows),
        "## Passed",
        _table(("source", "cases"), _passed(rows)),
    ]
    return "\n\n".join(parts) + "\n"


def _counts(rows: Sequence[Row]) -> Iterable[tuple[str, ...]]:
    groups = defaultdict(list)
    for one in rows:
        found = _SIG.match(one.name)
        groups[found[1] if found else "other"].append(one.outcome)
    for name, outcomes in sorted(groups.items()):
        yield name, *(str(outcomes.count(outcome)) for outcome in Outcome)
    if len(groups) > 1:
        everything = [one.outcome for one in rows]
        yield "all", *(str(everything.count(outcome)) for outcome in Outcome)


def _section(title: str, outcome: Outcome, rows: Sequence[Row]) -> list[str]:
    """Cases of one reason stand together."""
    reasons = defaultdict(list)
    for one in rows:
        if one.outcome is outcome:
            reasons[_short(one.reason)].append(_escaped(_plain(one.name)))
    if not reasons:
        return []
    lines = sorted((", ".join(names), _escaped(reason)) for reason, names in reasons.items())
    return [f"## {title}", _table(("case", "reason"), lines)]


def _passed(rows: Sequence[Row]) -> Iterable[tuple[str, ...]]:
    files = defaultdict(list)
    for one in rows:
        files[one.file].append(one.outcome)
    for file, outcomes in sorted(files.items()):
        if Outcome.PASSED in outcomes:
            yield f"{file}", f"{outcomes.count(Outcome.PASSED)} of {len(outcomes)}"


def _plain(name: str) -> str:
    """Leave out labels that all cases have."""
    return re.sub(r" ?\[(?:NodeConformance|Conformance|LinuxOnly)\]", "", name)


def _short(reason: str) -> str:
    """Take out what differs from run to run, and cut."""
    text = " ".join(reason.split())
    for given, put in _GIVEN:
        text = given.sub(put, text)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3].rstrip()}..."


def _escaped(text: str) -> str:
    return re.sub(r"([|<>*_`\[\]])", r"\\\1", text)


def _table(heads: Iterable[str], lines: Iterable[tuple[str, ...]]) -> str:
    heads = [*heads]
    rule = "|".join("---" for _ in heads)
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)])
