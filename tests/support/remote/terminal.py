"""Runs on the login node: a program at a terminal of its own, spoken to step by step; prints JSON.

Reads {"argv": [...], "steps": [[verb, value], ...], "limit_s": 60} from standard input and prints {"rc": ..., "shown":
...}. Verbs: `expect` a pattern in what was not matched before, `send` text, `resize` to [rows, columns], `hang_up`.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

READ_BYTES = 65536
# Rows and columns of a new window.
SIZE = (24, 80)


class Terminal:
    """A program and its terminal."""

    def __init__(self, argv: list[str], limit_s: float) -> None:
        self.deadline = time.monotonic() + limit_s
        self.shown = ""
        self.matched = 0
        self.master: int | None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            self.master = 0
            self.resize(SIZE)
            os.execvp(argv[0], argv)  # noqa: S606  a user at a terminal starts what he likes

    def expect(self, pattern: str) -> None:
        """Wait until this is shown."""
        while not (found := re.compile(pattern, re.MULTILINE).search(self.shown, self.matched)):
            if not self._read():
                sys.exit(f"{pattern!r} was not shown before the end, but {self.shown!r}")
        self.matched = found.end()

    def send(self, text: str) -> None:
        """Type."""
        assert self.master is not None
        os.write(self.master, text.encode())

    def resize(self, size: tuple[int, int]) -> None:
        """Have another size; the program gets SIGWINCH."""
        assert self.master is not None
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", *size, 0, 0))

    def hang_up(self, _: str) -> None:
        """Close the window."""
        assert self.master is not None
        os.close(self.master)
        self.master = None

    def end(self) -> int:
        """Wait for the program's end; return its status as a shell does."""
        while self.master is not None and self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def _read(self) -> bool:
        """Read what is shown; return whether there may be more."""
        assert self.master is not None
        readable, _, _ = select.select([self.master], [], [], max(0.0, self.deadline - time.monotonic()))
        if not readable:
            os.kill(self.pid, signal.SIGKILL)
            sys.exit(f"nothing more was shown in time after {self.shown!r}")
        try:
            content = os.read(self.master, READ_BYTES)
        except OSError:  # Linux's word for a terminal that nobody holds any more
            return False
        self.shown += content.decode(errors="replace")
        return bool(content)


def main() -> None:
    """Take all steps, wait for the end."""
    asked = json.load(sys.stdin)
    terminal = Terminal(asked["argv"], asked["limit_s"])
    for verb, value in asked["steps"]:
        getattr(terminal, verb)(value)
    print(json.dumps({"rc": terminal.end(), "shown": terminal.shown}))


if __name__ == "__main__":
    main()
