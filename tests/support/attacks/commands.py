"""Many commands of one user in one call to a node, each with a time limit of its own: rows of attacks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.clusters.cluster import Node

LIMIT_S = 20
AT_ONCE = 4
_RUN = """
import concurrent.futures, json, subprocess, sys
def run(command):
    try:
        done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None, "no end"
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")[-4000:]
ways = json.loads(sys.argv[1])
with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
    print(json.dumps(dict(zip(ways, pool.map(run, ways.values())))))
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a command.

    Attributes:
        rc: its exit status; None when the time was up.
        said: on both streams, the end.
    """

    rc: int | None
    said: str

    @property
    def worked(self) -> bool:
        """Whether it succeeded."""
        return self.rc == 0


def tried(node: Node, user: str, ways: Mapping[str, str], at_once: int = AT_ONCE) -> dict[str, Outcome]:
    """Run each command of a table in the user's name; return what became of them."""
    program = _RUN.replace("LIMIT", str(LIMIT_S)).replace("AT_ONCE", str(at_once))
    reported = node.run_as(user, f"python3 -c {shlex.quote(program)} {shlex.quote(json.dumps(ways))}")
    return {name: Outcome(rc, said) for name, (rc, said) in json.loads(reported.splitlines()[-1]).items()}
