"""What encryption between nodes costs: pods on two nodes, in namespaces of this machine, with it and without.

Both are there at once, and each round measures both: TCP from one pod to the other, and UDP there and back. Sender,
receiver and WireGuard share this machine's cores, so a stream measures what all of it takes of the CPU.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path

from isthmus.model.networks.wireguard import Program
from tests.bench import results, rounds
from tests.support.networks.encrypted import World
from tests.support.networks.namespaces import Namespace
from tests.support.networks.wires import kernel_has_wireguard
from tests.support.servers.etcd import running

PORT = 7100
# Of TCP a round, seconds; of UDP questions.
STREAM_S, QUESTIONS = 2.0, 3000
RECEIVE = """
import socket, sys, time
server = socket.create_server(("", int(sys.argv[1])))
print("ready", flush=True)
taken, _ = server.accept()
buffer, count, begin = bytearray(1 << 20), 0, time.perf_counter()
while got := taken.recv_into(buffer):
    count += got
print(count / (time.perf_counter() - begin))
"""
SEND = """
import socket, sys, time
sender = socket.create_connection((sys.argv[1], int(sys.argv[2])))
data, end = bytes(1 << 18), time.perf_counter() + float(sys.argv[3])
while time.perf_counter() < end:
    sender.sendall(data)
"""
ECHO = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", int(sys.argv[1])))
print("ready", flush=True)
while (question := server.recvfrom(99))[0] != b"end":
    server.sendto(*question)
"""
ASK = """
import socket, statistics, sys, time
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.connect((sys.argv[1], int(sys.argv[2])))
asker.settimeout(10)
taken = []
for _ in range(int(sys.argv[3])):
    begin = time.perf_counter()
    asker.send(b"x")
    asker.recv(99)
    taken.append(time.perf_counter() - begin)
asker.send(b"end")
print(1e6 * statistics.median(taken))
"""


def pair(server: Namespace, client: Namespace, scripts: tuple[str, str], address: IPv4Address, amount: float) -> str:
    """Run a server and its client; return the last word of the one that prints a figure."""
    listen, call = ([sys.executable, "-ISc", script] for script in scripts)
    answering = server.do(lambda: subprocess.Popen([*listen, str(PORT)], stdout=subprocess.PIPE, text=True))
    assert answering.stdout is not None
    answering.stdout.readline()
    asked = client.run(*call, str(address), str(PORT), str(amount))
    words: list[str] = (asked.stdout + answering.communicate(timeout=60)[0]).split()
    return words[-1]


def measure(world: World) -> dict[str, float]:
    """Return bytes a second, and microseconds there and back, from a pod on n1 to one on n2."""
    ends = world.pod("n2"), world.pod("n1")
    address = world.net.pod_address("n2", 1)
    return {
        "stream": float(pair(*ends, (RECEIVE, SEND), address, STREAM_S)),
        "latency": float(pair(*ends, (ECHO, ASK), address, QUESTIONS)),
    }


def figures(count: int, by: Program) -> dict[str, object]:
    """Measure in rounds; the first counts not."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(running(folder))
        worlds = {
            name: World(stack, cluster, folder, by, encrypts=encrypts)
            for name, encrypts in (("plain", False), ("encrypted", True))
        }
        worlds["encrypted"].start("n1", "n2")
        seen: list[dict[str, dict[str, float]]] = []
        for _ in range(count + 1):
            names = random.sample([*worlds], len(worlds))
            measured = {name: measure(worlds[name]) for name in names}
            seen.append({kind: {name: measured[name][kind] for name in worlds} for kind in ("stream", "latency")})
    return {kind: rounds.compare([one[kind] for one in seen[1:]], "plain") for kind in ("stream", "latency")}


def main() -> None:
    """Print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    for by in Program:
        if by is Program.KERNEL and not kernel_has_wireguard():
            print("this kernel has no WireGuard")
            continue
        found = figures(options.rounds, by)
        results.save(f"encryption_{by}", rounds=options.rounds, compared=found)
        print(by, found)


if __name__ == "__main__":
    main()
