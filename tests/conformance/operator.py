"""`make conformance-mpi`: the MPI Operator's own cases in a user's Kubernetes, and docs/results/mpi-operator.md."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml

from tests.bench import mpijobs_page, testbed
from tests.conformance import report, results
from tests.conformance.cases import Case, Inapplicable, idle, inapplicable, reason_against
from tests.conformance.junit import Outcome, Verdict
from tests.conformance.operator_suite import IMAGES, OperatorSuite

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("inapplicable_mpi.yml")
SUBJECT = "mpi_operator"
NO_INTEL = "the site has not accepted the licence of Intel MPI (workloads_mpi_intel_licence_accepted)"


def main() -> int:
    """Run the cases; the exit status says whether one failed."""
    parser = argparse.ArgumentParser(description="Run the MPI Operator's own cases on a running test bed.")
    testbed.add_arguments(parser)
    parser.add_argument("--focus", default="", help="regular expression of cases' names (default: all)")
    parser.add_argument("--publish", action="store_true", help="no run: add the results to docs/results")
    arguments = parser.parse_args()
    version = yaml.safe_load((ROOT / "artifacts.yml").read_text())["releases"]["mpi-operator-tests"]["version"]
    if arguments.publish:
        return publish(version)
    bed = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    suite = OperatorSuite(bed, images(bed))
    known, table = suite.cases(), inapplicable(TABLE)
    if gone := idle(known, table):
        sys.exit(f"no case is {gone}; correct {TABLE.relative_to(ROOT)}")
    counted: Counter[Outcome] = Counter()
    for case in [case for case in known if re.search(arguments.focus, case.name)]:
        found = once(suite, case, table)
        counted[found.outcome] += 1
        print(f"{found.outcome}, {found.seconds:.0f} s: {case.name}", flush=True)
        rows = results.kept(version, subject=SUBJECT)
        rows = results.merged(rows, [results.row(case, found, f"{datetime.now(UTC):%Y-%m-%d}")])
        results.keep(rows, version, SUBJECT)
    print(", ".join(f"{counted[outcome]} {outcome}" for outcome in Outcome))
    return 1 if counted[Outcome.FAILED] else 0


def publish(version: str) -> int:
    """Write the page of all cases; the part about many jobs stays."""
    if not (rows := results.publish(version, SUBJECT)):
        sys.exit(f"results/conformance-mpi.json has no results of {version}; run `make conformance-mpi` first")
    others = mpijobs_page.of(mpijobs_page.PAGE.read_text())
    mpijobs_page.PAGE.write_text(report.operator_page(rows, version) + others)
    return 0


def images(bed: testbed.TestBed) -> dict[str, str]:
    """Start the user's cluster with MPIJobs; return the image of each MPI there is."""
    reported = json.loads(bed.run("bash -lc 'isthmus up >&2 && isthmus workloads add mpi --json'"))["workloads"][0]
    found = {mpi: reported["images"].get(f"mpi-operator-{mpi}") for mpi in IMAGES}
    return {mpi: image for mpi, image in found.items() if image}


def once(suite: OperatorSuite, case: Case, table: Sequence[Inapplicable]) -> Verdict:
    """Run a case that can apply."""
    against = reason_against(case, table)
    if not against and "Intel" in case.name and "intel" not in suite.images:
        against = NO_INTEL
    if against:
        return Verdict(Outcome.INAPPLICABLE, 0.0, against)
    found, reported = suite.run(case)
    results.keep_log(case, found, reported, "conformance-mpi")
    return found


if __name__ == "__main__":
    sys.exit(main())
