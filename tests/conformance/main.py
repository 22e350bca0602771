"""`make conformance`: the official cases against a user's own Kubernetes.

One case is one run of the suite, so a case that hangs costs its time limit and nothing else, and results are kept
from the first case on. `--publish` adds them to docs/results/conformance.json and writes the page, without a run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

import yaml
from rich.console import Console

from tests.bench import testbed
from tests.conformance import report, results
from tests.conformance.cases import Case, Inapplicable, chosen, idle, inapplicable, reason_against
from tests.conformance.junit import Outcome, Verdict
from tests.conformance.suite import Suite

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/results/conformance.md"
FOCUS = r"^\[sig-node\]"


def main() -> int:
    """Run the cases; the exit status says whether one failed."""
    arguments = _arguments()
    console = Console(highlight=False)
    kubernetes = yaml.safe_load((ROOT / "artifacts.yml").read_text())["releases"]["conformance"]["version"]
    if arguments.publish:
        _publish(kubernetes)
        return 0
    bed = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    suite = Suite(bed, arguments.images, arguments.limit)
    if (running := suite.up()) != kubernetes:
        sys.exit(
            f"{arguments.user}'s API server is {running}, the suite {kubernetes}; deploy this tree and start it again"
        )
    table, known = inapplicable(), suite.cases()
    if gone := idle(known, table):
        sys.exit(f"no case is {gone}; correct tests/conformance/inapplicable.yml")
    counted = _run(suite, chosen(known, arguments.focus), table, kubernetes, arguments.at_once, console)
    console.print(", ".join(f"{counted[outcome]} {outcome}" for outcome in Outcome))
    return 1 if counted[Outcome.FAILED] else 0


def _run(
    suite: Suite, cases: list[Case], table: list[Inapplicable], kubernetes: str, at_once: int, console: Console
) -> Counter[Outcome]:
    counted: Counter[Outcome] = Counter()
    with console.status("") as status:
        for case, found in _verdicts(suite, cases, table, at_once):
            counted[found.outcome] += 1
            done = f"{counted.total()}/{len(cases)}"
            why = found.reason.splitlines()[0] if found.reason else ""
            said = f"{done} {found.outcome}, {found.seconds:.0f} s: {case.name}"
            console.print(f"{said}: {why}" if why else said, markup=False)
            status.update(f"{done} cases, {counted[Outcome.FAILED]} failed")
            new = results.row(case, found, f"{datetime.now(UTC):%Y-%m-%d}")
            results.keep(results.merged(results.kept(kubernetes), [new]), kubernetes)
    return counted


def _verdicts(
    suite: Suite, cases: list[Case], table: list[Inapplicable], at_once: int
) -> Iterator[tuple[Case, Verdict]]:
    """Run the cases, each with its verdict as it comes; those that want the cluster for themselves come last."""
    for alone in (False, True):
        with ThreadPoolExecutor(1 if alone else at_once) as pool:
            some = [case for case in cases if case.alone == alone]
            running = {pool.submit(_one, suite, case, reason_against(case, table)): case for case in some}
            for future in as_completed(running):
                yield running[future], future.result()


def _one(suite: Suite, case: Case, against: str) -> Verdict:
    if against:
        return Verdict(Outcome.INAPPLICABLE, 0.0, against)
    found, reported = suite.run(case)
    results.keep_log(case, found, reported, "conformance")
    return found


def _publish(kubernetes: str) -> None:
    rows = results.publish(kubernetes)
    if not rows:
        sys.exit(f"results/conformance.json has no results of Kubernetes {kubernetes}; run `make conformance` first")
    PAGE.write_text(report.page(rows, kubernetes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run Kubernetes' conformance cases on a running test bed.")
    testbed.add_arguments(parser)
    parser.set_defaults(user="carol")
    parser.add_argument("--focus", default=FOCUS, help="regular expression of cases' names (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=600, help="seconds that a case may take (default: %(default)s)")
    parser.add_argument(
        "--at-once", type=int, default=3, help="cases at a time, most of which wait (default: %(default)s)"
    )
    parser.add_argument("--images", default="ctl:5000/conformance", help="where its images are (default: %(default)s)")
    parser.add_argument("--publish", action="store_true", help="no run: add the results to docs/results")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
