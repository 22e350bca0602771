"""What does a login pod add to `ssh login true`: to the first session, which makes it, and to a further one?

One sshd with the module and one without it, on the same host, in rounds of random order. So both pay for one session,
and for whatever else the machine does. With --pods it is asked what one more pod costs where there are many, on a
simulated node (`login_pods_many`). With --followed it is asked how much memory follows the Services of each user's
cluster (`login_pods_followed`).
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
from pathlib import Path

from rich.console import Console

from tests.bench import login_pods_followed, login_pods_many, testbed
from tests.bench.login_rounds import FIRST, FURTHER, WITHOUT
from tests.bench.results import quantile, save

HERE = Path(__file__).parent
# The goals, milliseconds more than without.
GOALS_MS = {FIRST: 150, FURTHER: 30}


def measure(cluster: testbed.TestBed, user: str, rounds: int) -> dict[str, list[float]]:
    """Return kind of session -> seconds of each round."""
    uid = int(cluster.run(f"id -u {user}"))
    host = json.loads(cluster.run("cat /etc/isthmus/network.json"))["address"]
    asked = json.dumps({"rounds": rounds, "user": user, "uid": uid, "host": host})
    program = shlex.quote((HERE / "login_rounds.py").read_text())
    seconds: dict[str, list[float]] = {}
    for line in cluster.run(f"python3 -c {program}", stdin=asked).splitlines():
        each = json.loads(line)
        seconds.setdefault(each["name"], []).append(each["seconds"])
    return seconds


def added_ms(seconds: dict[str, list[float]], kind: str) -> list[float]:
    """Return, for each round, how much longer a kind of session took than one without."""
    return [1000 * (a - b) for a, b in zip(seconds[kind], seconds[WITHOUT], strict=True)]


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Time sessions in login pods against those on the host.")
    parser.add_argument("--rounds", type=int, default=25, help="of all three kinds (default: %(default)s)")
    parser.add_argument("--pods", type=int, metavar="N", help="make N pods on a simulated node instead, up to 1000")
    parser.add_argument("--followed", type=int, metavar="N", help="follow N clusters' Services instead")
    parser.add_argument("--before", type=Path, metavar="SRC", help="with --followed: sources of an earlier tree, too")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.followed:
        found = login_pods_followed.measure(arguments.followed, arguments.before)
        print(save("login_pods_followed", quick=arguments.followed < login_pods_many.COUNTED, **found))
    elif arguments.pods:
        found = login_pods_many.measure(arguments.pods)
        print({name: value for name, value in found.items() if name not in ("looks", "seconds")})
        print(save("login_pods_many", quick=arguments.pods < 1000, **found))
    else:
        compare(testbed.TestBed(arguments.name, arguments.host, "root"), arguments.user, arguments.rounds)
    return 0


def compare(cluster: testbed.TestBed, user: str, rounds: int) -> None:
    """Measure sessions, and write JSON."""
    console = Console()
    seconds = measure(cluster, user, rounds)
    base_ms = round(1000 * statistics.median(seconds[WITHOUT]), 1)
    added = {}
    for kind, goal_ms in GOALS_MS.items():
        each = added_ms(seconds, kind)
        added[kind] = {
            "median_ms": round(statistics.median(each), 1),
            "quarters_ms": [round(quantile(each, share), 1) for share in (0.25, 0.75)],
            "goal_ms": goal_ms,
        }
    console.print(f"without {base_ms} ms, more than that: {added}", markup=False)
    print(save("login_pods", without_ms=base_ms, added=added, seconds=seconds))


if __name__ == "__main__":
    sys.exit(main())
