"""Runs cases of the MPI Operator's own tests on the submit host, as an ordinary user in his own Kubernetes.

The suite is of Ginkgo's first version: its report has no status of a case, but elements within it.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from tests.bench.testbed import TestBed
from tests.conformance.cases import Case
from tests.conformance.junit import Outcome, Verdict

FILE = "mpi_job_test.go"
# The suite waits 200 s for a job, and some cases for the operator before and after.
LIMIT_S = 600
IMAGES = {"openmpi": "TEST_OPENMPI_IMAGE", "mpich": "TEST_MPICH_IMAGE", "intel": "TEST_INTELMPI_IMAGE"}
_THERE = ("CLUSTER", "OPERATOR", "SCHEDULER_PLUGINS", "VOLCANO_SCHEDULER")


@dataclass(frozen=True)
class OperatorSuite:
    """The installed suite.

    Attributes:
        bed: where it runs, and as whom.
        images: reference of the image of each MPI that the site has.
        program: where playbooks/conformance_mpi.yml has put it.
    """

    bed: TestBed
    images: Mapping[str, str]
    program: str = "/usr/lib/isthmus/mpi-operator.test"

    def cases(self) -> list[Case]:
        """Return all cases."""
        reported = self.bed.run(self._script("-ginkgo.dryRun"))
        return [Case(str(each.get("name")), FILE) for each in _entries(reported)]

    def run(self, case: Case) -> tuple[Verdict, str]:
        """Run a case; return what became of it, and all that the suite wrote."""
        done = subprocess.run(
            # The suite puts its own title before names.
            [*self.bed.ssh, self._script(f"-ginkgo.focus={re.escape(case.name)}$", "-ginkgo.v")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        return verdict(done.stdout, case.name, done.returncode), done.stderr

    def _script(self, *options: str) -> str:
        """Print the report alone; the suite's own words go to the other stream."""
        given = {f"USE_EXISTING_{name}": "true" for name in _THERE}
        given |= {variable: self.images[mpi] for mpi, variable in IMAGES.items() if mpi in self.images}
        variables = [f"{name}={value}" for name, value in given.items()]
        words = [self.program, "-ginkgo.noColor", "-ginkgo.reportFile=report.xml", *options]
        script = "\n".join(
            [
                'folder=$(mktemp -d) && trap \'rm -rf "$folder"\' EXIT && cd "$folder" || exit',
                'export KUBECONFIG="$(isthmus kubeconfig --path)"',
                f"env {shlex.join(variables)} timeout --kill-after=10 {LIMIT_S} {shlex.join(words)} >&2",
                "status=$?",
                "cat report.xml 2>/dev/null",
                "exit $status",
            ]
        )
        return f"bash --login -c {shlex.quote(script)}"


def verdict(report: str, name: str, status: int = 0) -> Verdict:
    """Read the report of a run of one case.

    Args:
        report: XML; "" when the suite wrote none.
        name: the case.
        status: that the suite ended with.
    """
    try:
        case = next((each for each in _entries(report) if each.get("name") == name), None)
    except ElementTree.ParseError as error:
        return Verdict(Outcome.FAILED, 0.0, f"the suite ended with status {status} and no report: {error}")
    if case is None or case.find("skipped") is not None:
        return Verdict(Outcome.FAILED, 0.0, "the suite did not run it")
    seconds, failure = round(float(case.get("time") or 0), 1), case.find("failure")
    if failure is None:
        return Verdict(Outcome.PASSED, seconds)
    return Verdict(Outcome.FAILED, seconds, "".join(failure.itertext()).strip() or "failed")


def _entries(report: str) -> Iterator[ElementTree.Element]:
    # The suite that wrote it is one of the cluster's own programs.
    return ElementTree.fromstring(report).iter("testcase")  # noqa: S314
