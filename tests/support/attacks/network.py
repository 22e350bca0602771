"""Ways to get where one must not, tried by an ordinary user: a program of the standard library alone.

Reads a list of ways as JSON in base64, tries them at once, and prints name -> what came of it as JSON: `blocked: ...`
or `open: ...`. A way is {"name": ..., "kind": a function below, and its arguments}. Brought to nodes and into pods.
"""

import base64
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

TIMEOUT_S = 1.5
UDP_SEGMENT, CLONE_NEWNET = 103, 0x40000000
FRAME = bytes.fromhex("ffffffffffff0a58000000010800") + bytes(60)
VXLAN = struct.pack("!II", 0x08000000, 4096 << 8) + FRAME


def opened(kind, device="", source="", source_port=0, family=socket.AF_INET):
    made = socket.socket(family, kind)
    made.settimeout(TIMEOUT_S)
    if device:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    if source or source_port:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((source, source_port))
    return made


def tcp(address, port, **how):
    with opened(socket.SOCK_STREAM, **how) as client:
        client.connect((address, port))
        return f"connected to {address}:{port}"


def spoken(address, port, **how):
    """Connect, and wait for a word: a listener's backlog alone is not yet its program."""
    with opened(socket.SOCK_STREAM, **how) as client:
        client.connect((address, port))
        client.send(b"who is there?")
        return f"{client.recv(99)}"


def udp(address, port, **how):
    with opened(socket.SOCK_DGRAM, **how) as client:
        client.sendto(b"?", (address, port))
        return f"answered {client.recv(99)}"


def icmp(address, **how):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as client:
        client.settimeout(TIMEOUT_S)
        if how.get("device"):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, how["device"].encode())
        client.sendto(struct.pack("!BBHHH", 8, 0, 0, 0, 1), (address, 0))
        return f"echo {client.recv(99)[:1]}"


def send(address, port, repeat=1, size=0, segment=0, v6=False, **how):
    """Send what must be refused at once, on this very host."""
    with opened(socket.SOCK_DGRAM, family=socket.AF_INET6 if v6 else socket.AF_INET, **how) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        if segment:
            client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, segment)
        client.sendto((VXLAN + bytes(size)) * repeat, (address, port))
        return "sent"


def scan(addresses, port, **how):
    """Send to many addresses; what comes of it is counted elsewhere."""
    for address in addresses:
        with opened(socket.SOCK_DGRAM, **how) as client:
            client.sendto(b"x", (address, port))
    return "sent"


def turn(address, port, device):
    """Connect where one may, and go by another's interface then."""
    with opened(socket.SOCK_STREAM) as client:
        client.connect((address, port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        client.send(b"x")
        time.sleep(TIMEOUT_S)
        return "sent"


def flood(address, count):
    """Send to many ports: each is a connection to remember."""
    refused = 0
    with opened(socket.SOCK_DGRAM, source_port=0) as client:
        for number in range(count):
            if number % 60000 == 0:
                client.close()
                client = opened(socket.SOCK_DGRAM)
            try:
                client.sendto(b"x", (address, 2000 + number % 60000))
            except OSError:
                refused += 1
    return f"{refused} refused"


def option(number, value):
    with opened(socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, number, value)
        return f"{number} is {value}"


def raw(family, protocol):
    socket.socket(getattr(socket, family), socket.SOCK_RAW, protocol).close()
    return f"{family} of its own"


def foreign(source, target, port):
    """Send from an address that is not one's own: 15 is IP_FREEBIND."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(TIMEOUT_S)
        client.setsockopt(socket.IPPROTO_IP, 15, 1)
        client.bind((source, 0))
        client.sendto(b"?", (target, port))
        return f"answered {client.recv(99)}"


def enter(path):
    with open(path) as handle:
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    return "entered"


def command(argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise OSError(done.returncode, done.stderr.strip()[-99:])
    return f"did {' '.join(argv)}: {done.stdout.strip()[:99]}"


def query(name):
    parts = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + parts + b"\0\0\1\0\1"


def dns(server, question):
    with opened(socket.SOCK_DGRAM) as client:
        client.sendto(query(question), (server, 53))
        answer = client.recv(512)
    if not struct.unpack("!6H", answer[:12])[3]:
        raise OSError(0, f"no such name, code {answer[3] & 15}")
    return f"{question} is {'.'.join(map(str, answer[-4:]))}"


def questions(server, question, count):
    answered = 0
    for _ in range(count):
        with suppress(OSError):
            dns(server, question)
            answered += 1
    return f"{answered} of {count} answered"


def barrage(address, seconds):
    """Ask as fast as it goes; return how often, and how many answers came."""
    ends, asked, sent, answered = time.monotonic() + seconds, query("nobody.example.org"), 0, 0
    with opened(socket.SOCK_DGRAM) as client:
        client.connect((address, 53))
        client.setblocking(False)
        while time.monotonic() < ends:
            with suppress(OSError):
                client.send(asked)
                sent += 1
            with suppress(OSError):
                answered += bool(client.recv(512))
    return f"{sent} {answered}"


def listen(address, port, seconds):
    """Answer all callers for a while: the trap, not the attack."""
    ends = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second, socket.create_server((address, port)) as server:
        second.bind((address, port))
        threading.Thread(target=_answer, args=(second,), daemon=True).start()
        while (left := ends - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                connection, _ = server.accept()
            except TimeoutError:
                break
            with connection:
                connection.send(b"squatter")
    return "listened"


def _answer(server):
    while True:
        try:
            _, peer = server.recvfrom(99)
            server.sendto(b"squatter", peer)
        except OSError:
            return


def attempt(way):
    kind = way["kind"]
    arguments = {name: value for name, value in way.items() if name not in ("name", "kind")}
    try:
        return f"open: {globals()[kind](**arguments)}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"blocked: {error}"


if __name__ == "__main__":
    ways = json.loads(base64.b64decode(sys.argv[1]))
    with ThreadPoolExecutor(64) as pool:
        print(json.dumps({way["name"]: reported for way, reported in zip(ways, pool.map(attempt, ways), strict=True)}))
    sys.stdout.flush()
    os._exit(0)
