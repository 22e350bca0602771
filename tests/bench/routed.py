"""What the routed network costs: pods on two nodes, in namespaces of this machine, against the nodes themselves.

Each round measures both: TCP from one to the other, and UDP there and back.
"""

from __future__ import annotations

import argparse
import random
from contextlib import ExitStack

from tests.bench import results, rounds
from tests.bench.encryption import ASK, ECHO, QUESTIONS, RECEIVE, SEND, STREAM_S, pair
from tests.support.networks.routed import World


def measure(world: World, kind: str) -> dict[str, float]:
    """Return bytes a second, and microseconds there and back, from n1 to n2."""
    if kind == "host":
        ends, address = (world.nodes.places["n2"], world.nodes.places["n1"]), world.nodes.address("n2")
    else:
        ends, address = (world.pods["n2", 1], world.pods["n1", 1]), world.address("n2", 1)
    return {
        "stream": float(pair(*ends, (RECEIVE, SEND), address, STREAM_S)),
        "latency": float(pair(*ends, (ECHO, ASK), address, QUESTIONS)),
    }


def main() -> None:
    """Print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    kinds = ("host", "routed")
    seen: list[dict[str, dict[str, float]]] = []
    with ExitStack() as stack:
        world = World(stack)
        for _ in range(options.rounds + 1):
            measured = {kind: measure(world, kind) for kind in random.sample(kinds, len(kinds))}
            seen.append({what: {kind: measured[kind][what] for kind in kinds} for what in ("stream", "latency")})
    found = {what: rounds.compare([one[what] for one in seen[1:]], "host") for what in ("stream", "latency")}
    results.save("routed", rounds=options.rounds, compared=found)
    print(found)


if __name__ == "__main__":
    main()
