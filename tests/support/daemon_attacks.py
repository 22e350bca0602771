"""Attacks on a node's network daemon, run there as an ordinary user: standard library only.

    daemon_attacks.py ask                       packed lines on standard input, a line of reply each
    daemon_attacks.py partial                   the same, each line sent without its end; what comes back in 3 s
    daemon_attacks.py hold UIDS EACH SECONDS    open connections, by subordinate uids if UIDS > 0; how many are served
    daemon_attacks.py flood KIND SECONDS UIDS PROCESSES JOB    one of KINDS as fast as the daemon lets; how many answers

With UIDS it must be run below `unshare --user --map-root-user --map-auto`.
"""

import base64
import json
import os
import socket
import sys
import time
import zlib

SOCKET = "/run/isthmus/networkd.sock"


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
    "churn": lambda turn, job: line("unreserve" if turn % 2 else "reserve", name=f"churn-{os.getpid()}"),
}


def connect():
    """Return a connection to the daemon."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(SOCKET)
    return connection


def exchange(text, answer_s=30):
    """Send bytes on a connection of their own; return the reply's line."""
    with connect() as connection:
        connection.settimeout(answer_s)
        try:
            connection.sendall(text)
            return connection.makefile("rb").readline()
        except OSError as error:
            return f"{type(error).__name__}\n".encode()


def ask(answer_s=30):
    """Send each line of standard input."""
    for text in sys.stdin:
        sys.stdout.write(
            exchange(zlib.decompress(base64.b64decode(text)), answer_s).decode("ascii", "replace") or "closed\n"
        )


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
    return sum(int(os.fdopen(each).read() or 0) for each in readers)


def hold(each, seconds):
    """Open connections and keep them; return how many were answered."""
    until, held, served = time.monotonic() + seconds, [], 0
    for _ in range(each):
        try:
            connection = connect()
            connection.settimeout(2)
            connection.sendall(line("job_get", job=4294967000))
            # Whoever is told that he is nobody is not served.
            served += b'"ok":true' in connection.recv(1000)
            held.append(connection)
        except OSError:
            continue
    time.sleep(max(0, until - time.monotonic()))
    return served


def flood(kind, seconds, job):
    """Ask as fast as the answers come, on a new connection whenever one is closed; return the answers."""
    until, turn, answers, connection = time.monotonic() + seconds, 0, 0, None
    while time.monotonic() < until:
        try:
            if kind == "burn":
                continue
            connection = connection or connect()
            connection.settimeout(max(0.1, until - time.monotonic()))
            connection.sendall(KINDS[kind](turn, job))
            turn += 1
            if kind == "connect" or not connection.recv(65536):
                connection.close()
                connection = None
            else:
                answers += 1
        except OSError:
            connection = None
    return answers


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
    return sum(int(os.fdopen(each).read() or 0) for each in readers)


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
    elif verb == "flood":
        kind, (seconds, uids, count, job) = words[0], map(int, words[1:])
        print(as_each(uids, lambda: processes(count, lambda: flood(kind, seconds, job))))


if __name__ == "__main__":
    main()
