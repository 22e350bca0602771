"""Runs cases of the suite on the submit host, as an ordinary user in his own Kubernetes."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass

import yaml

from tests.bench.testbed import TestBed
from tests.conformance.cases import Case, listed
from tests.conformance.junit import Outcome, Verdict, verdict

# Below the repository of images that playbooks/conformance.yml has brought.
REGISTRIES = ("promoterE2eRegistry", "gcRegistry")
# After the time limit the suite removes what it made.
CLEANS_UP_S = 120
HEAD = "v"


@dataclass(frozen=True)
class Suite:
    """The installed suite.

    Attributes:
        bed: where it runs, and as whom.
        images: registry and repository of its images.
        limit_s: what one case may take.
        program: where playbooks/conformance.yml has put it.
    """

    bed: TestBed
    images: str
    limit_s: int
    program: str = "/usr/lib/isthmus/e2e.test"

    def up(self) -> str:
        """Start the user's Kubernetes; return the version of its API server.

        Raises:
            subprocess.CalledProcessError: it does not start.
        """
        self.bed.run(self._shell("isthmus up >&2"))
        version = self.bed.run(self._shell("kubectl --kubeconfig=$(isthmus kubeconfig --path) version --output=json"))
        return str(yaml.safe_load(version)["serverVersion"]["gitVersion"]).removeprefix(HEAD)

    def cases(self) -> list[Case]:
        """Return all conformance cases of the suite."""
        return listed(self.bed.run(f"{self.program} --list-conformance-tests"))

    def run(self, case: Case) -> tuple[Verdict, str]:
        """Run a case; return what became of it and all that the suite wrote."""
        done = subprocess.run(
            [*self.bed.ssh, self._shell(self._script(case))],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        found = verdict(done.stdout, case.name)
        if not done.stdout and found.outcome is Outcome.FAILED:
            found = Verdict(Outcome.FAILED, found.seconds, _end(done.returncode, done.stderr, self.limit_s))
        return found, done.stderr

    def _script(self, case: Case) -> str:
        """Print the report alone; the suite's own words go to the other stream."""
        registries = "".join(f"{name}: {self.images}\\n" for name in REGISTRIES)
        options = [
            "--provider=skeleton",
            "--minStartupPods=0",
            "--dump-logs-on-failure=false",
            "--ginkgo.no-color",
            f"--ginkgo.timeout={self.limit_s}s",
            f"--ginkgo.focus={case.pattern}",
        ]
        return "\n".join(
            [
                'folder=$(mktemp -d) && trap \'rm -rf "$folder"\' EXIT && cd "$folder" || exit',
                f"printf {shlex.quote(registries)} >images.yml",
                f"KUBE_TEST_REPO_LIST=images.yml timeout --kill-after=10 {self.limit_s + CLEANS_UP_S} {self.program}"
                f' --kubeconfig="$(isthmus kubeconfig --path)" --report-dir=. {shlex.join(options)} >&2',
                "status=$?",
                "cat junit_01.xml 2>/dev/null",
                "exit $status",
            ]
        )

    def _shell(self, script: str) -> str:
        return f"bash --login -c {shlex.quote(script)}"


def _end(status: int, reported: str, limit_s: int) -> str:
    if status in (124, 137):
        return f"the suite did not end within {limit_s + CLEANS_UP_S} s"
    last = next((line for line in reversed(reported.splitlines()) if line.strip()), "it said nothing")
    return f"the suite ended with status {status}: {last.strip()}"
