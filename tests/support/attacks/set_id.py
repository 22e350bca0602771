"""A program whose exit status is the effective user id it runs with: 24 bytes of x86-64 in an ELF file (elf(5))."""

from __future__ import annotations

import struct

# geteuid(); exit(its result): as few system calls as a program can report with.
_CODE = bytes.fromhex("b86b000000 0f05 89c7 b83c000000 0f05")
_BASE = 0x400000


def program() -> bytes:
    """Return the file."""
    size = 64 + 56 + len(_CODE)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, _BASE + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    return header + segment + _CODE
