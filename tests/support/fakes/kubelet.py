"""A kubelet's end of the channel: it sends what a test says and checks every frame it gets.

TLS is real. An unexpected frame, a second hello, or a report whose sequence goes back fails the test that waits next.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress

from isthmus.podproto import frames, windows

REPORT_KEYS = {
    *("schema", "uid", "job", "node", "addresses", "host_address"),
    *("sequence", "phase", "started", "error", "services_error", "sigterm", "containers", "type"),
}


def wait_for_log(kubelet, name, text):
    """Wait until a container has written something; a log can be asked for once it has begun."""
    kubelet.until(name, state="running")
    kubelet.logs(name, follow=True).wait_for(text)


class Stream:
    """One exec, log or forwarded port, from the kubelet's side."""

    def __init__(self, kubelet, number):
        self._kubelet, self.number = kubelet, number
        self.has_window, self.granted = False, 0
        self.got, self.end, self.first_s = {}, None, None

    def send(self, channel, content):
        self._kubelet.write(b"".join(frames.data(self.number, channel, chunk) for chunk in frames.chunks(content)))

    def cancel(self):
        self._kubelet.send({"type": "cancel", "stream": self.number})

    def grant(self, count):
        """Let the supervisor send so many bytes more."""
        self._kubelet.send(windows.grant(self.number, count))

    def wait_for(self, text, channel=frames.Channel.STDOUT, timeout_s=60):
        self._kubelet.wait(lambda: text in self.got.get(channel, b""), timeout_s, self._shown)

    def _shown(self):
        return {channel: (len(got), got[-200:]) for channel, got in self.got.items()}

    def finish(self, timeout_s=60):
        """Wait for the end; return (exit code, stdout, stderr)."""
        self._kubelet.wait(lambda: self.end is not None, timeout_s, self._shown)
        assert self.end["error"] is None, self.end["error"]
        return self.end["exit_code"], self.got.get(frames.Channel.STDOUT, b""), self.got.get(frames.Channel.STDERR, b"")

    def refusal(self, timeout_s=60):
        """Wait for an end that is an error; return its text."""
        self._kubelet.wait(lambda: self.end is not None, timeout_s, self._shown)
        return self.end["error"]


class Kubelet:
    """Listens; at most one supervisor at a time is its peer."""

    def __init__(self, certificates, folder):
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_3
        self._tls.load_cert_chain(certificates / "kubelet.crt", certificates / "kubelet.key")
        self._tls.load_verify_locations(certificates / "ca.crt")
        self._tls.verify_mode = ssl.CERT_REQUIRED
        self._folder = folder
        self._changed = threading.Condition()
        self._streams, self._number, self._wrong = {}, 0, None
        self.hellos, self.report, self._peer, self._server = [], None, None, None
        self.listen()

    def listen(self):
        """Open a new port and write kubelet.json."""
        self._server = socket.create_server(("127.0.0.1", 0))
        where = {"schema": 1, "address": "127.0.0.1", "port": self._server.getsockname()[1]}
        (self._folder / "kubelet.json").write_text(json.dumps(where))
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def leave(self):
        """Go away as a kubelet that dies."""
        # A listener that another thread waits at lives on after close.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        if self._peer:
            with suppress(OSError):
                self._peer.shutdown(socket.SHUT_RDWR)

    def wait(self, ready, timeout_s=60, shown=lambda: ""):
        """Wait until something is so."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not ready():
                assert self._wrong is None, self._wrong
                assert self._changed.wait(deadline - time.monotonic()), f"not so: {shown()} {self.report}"
            assert self._wrong is None, self._wrong

    @contextmanager
    def held(self):
        """Take nothing that comes, as one whose readers are slow."""
        with self._changed:
            yield

    def send(self, message):
        self.write(frames.message(message))

    def write(self, content):
        self._peer.sendall(content)

    def start(self, plan):
        self.wait(lambda: self._peer and self.hellos)
        self.send({"type": "plan", "plan": plan})

    def open(self, kind, **request):
        self._number += 1
        self._streams[self._number] = Stream(self, self._number)
        self._streams[self._number].has_window = "window" in request
        self.send({"type": kind, "stream": self._number, **request})
        return self._streams[self._number]

    def exec(self, container, *argv, tty=False, stdin=False):
        return self.open("exec", container=container, argv=list(argv), tty=tty, stdin=stdin)

    def logs(self, container, **rest):
        usual = {"follow": False, "tail": None, "since": None, "timestamps": False, "previous": False}
        return self.open("logs", container=container, **{**usual, "limit_bytes": None, **rest})

    def until(self, name, timeout_s=60, **wanted):
        """Wait until a container's report has these values; return it."""
        reported = lambda: ((self.report or {}).get("containers") or {}).get(name, {})  # noqa: E731
        self.wait(lambda: reported() and all(reported()[key] == value for key, value in wanted.items()), timeout_s)
        return reported()

    def ended(self, timeout_s=60):
        self.wait(lambda: self.report and self.report["phase"] == "ended", timeout_s)
        return self.report

    def _accept(self, server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            try:
                peer = self._tls.wrap_socket(connection, server_side=True)
            except OSError:  # also who does not trust us
                connection.close()
                continue
            threading.Thread(target=self._listen, args=(peer,), daemon=True).start()

    def _listen(self, peer):
        assembler, greeted = frames.Assembler(), False
        with suppress(OSError), peer, peer.makefile("rb") as reader:
            while head := reader.read(frames.HEAD_BYTES):
                frame = assembler.take(reader.read(frames.length(head)))
                if frame is not None:
                    with self._changed:
                        greeted = self._take(frame, peer, greeted)
                        self._changed.notify_all()

    def _take(self, frame, peer, greeted):
        if isinstance(frame, frames.Data):
            stream = self._streams[frame.stream]
            stream.first_s = stream.first_s or time.monotonic()
            stream.got[frame.channel] = stream.got.get(frame.channel, b"") + frame.body
        elif frame["type"] == "hello" and not greeted:
            self._peer = peer
            self.hellos.append(frame)
        elif frame["type"] == "report" and greeted and set(frame) == REPORT_KEYS:
            if self.report and frame["sequence"] < self.report["sequence"]:
                self._wrong = f"report {frame['sequence']} after {self.report['sequence']}"
            self.report = frame
        elif frame["type"] == "window" and self._streams[frame["stream"]].has_window:
            self._streams[frame["stream"]].granted += frame["bytes"]
        elif frame["type"] == "end":
            self._streams[frame["stream"]].end = frame
        else:
            self._wrong = f"unexpected {frame}"
        return True
