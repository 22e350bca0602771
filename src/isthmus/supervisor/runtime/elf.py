"""Static ELF files of a few hundred bytes (elf(5)): programs that must run in any image, also in one without a shell.

One segment, loaded to a fixed address: data first, then code, so that code of every machine finds the data at `DATA`.
"""

from __future__ import annotations

import os
import struct

_BASE = 0x400000
_HEADERS = 64 + 56
DATA = _BASE + _HEADERS
# Names of uname(2) and the numbers of elf.h.
_MACHINES = {"x86_64": 62, "aarch64": 183}


def file(machine: str, code: bytes, data: bytes = b"") -> bytes:
    """Return the ELF file of a program that begins with the first byte of its code."""
    size = _HEADERS + len(data) + len(code)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    # Executable, one loadable segment right after this header.
    entry = DATA + len(data)
    header = struct.pack("<HHIQQQIHHHHHH", 2, _MACHINES[machine], 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x10000)
    return ident + header + segment + data + code


def of_machine(programs: dict[str, bytes], machine: str) -> tuple[str, bytes]:
    """Return a machine's name, by default this one's, and its code.

    Raises:
        OSError: nobody wrote it for this machine.
    """
    name = machine or os.uname().machine
    if name not in programs:
        raise OSError(f"containers cannot be run on {name}: Isthmus knows {' and '.join(sorted(programs))}")
    return name, programs[name]


def write(path: str, content: bytes) -> None:
    """Write a program that everybody may run."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755)
    with os.fdopen(descriptor, "wb") as target:
        target.write(content)
    # The umask took some bits of the mode above.
    os.chmod(path, 0o755)  # noqa: S103
