"""A program that tells it runs and then waits for ever: it keeps a container's namespaces open.

It must run in any image, also in one without a shell, so it is made here: a static ELF file of some 200 bytes that
blocks all signals (Slurm sends SIGTERM to every process of a job, and Apptainer passes it on), does write(1, "+", 1)
and then pause() again and again.
"""

from __future__ import annotations

import struct

from isthmus.supervisor.runtime import elf

READY = b"+"
_ALL = b"\xff" * 8
# READY and the set of all signals lie right after the code.
_CODE = {
    "x86_64": bytes.fromhex(
        "b80e000000"  # mov eax, 14 (rt_sigprocmask)
        "bf00000000"  # mov edi, 0 (SIG_BLOCK)
        "488d352f000000"  # lea rsi, [rip + 47]
        "ba00000000"  # mov edx, 0
        "41ba08000000"  # mov r10d, 8
        "0f05"  # syscall
        "b801000000"  # mov eax, 1 (write)
        "bf01000000"  # mov edi, 1
        "488d3510000000"  # lea rsi, [rip + 16]
        "ba01000000"  # mov edx, 1
        "0f05"  # syscall
        "b822000000"  # mov eax, 34 (pause)
        "0f05"  # syscall
        "ebf7"  # jmp to the mov before
    ),
    "aarch64": b"".join(
        struct.pack("<I", word)
        for word in (
            0xD2800000,  # mov x0, #0 (SIG_BLOCK)
            0x30000221,  # adr x1, . + 69
            0xD2800002,  # mov x2, #0
            0xD2800103,  # mov x3, #8
            0xD28010E8,  # mov x8, #135 (rt_sigprocmask)
            0xD4000001,  # svc #0
            0xD2800020,  # mov x0, #1
            0x10000161,  # adr x1, . + 44
            0xD2800022,  # mov x2, #1
            0xD2800808,  # mov x8, #64 (write)
            0xD4000001,  # svc #0
            0xD2800000,  # mov x0, #0
            0xD2800001,  # mov x1, #0
            0xD2800002,  # mov x2, #0
            0xD2800003,  # mov x3, #0
            0xD2800928,  # mov x8, #73 (ppoll)
            0xD4000001,  # svc #0
            0x17FFFFFA,  # b to the mov of x0
        )
    ),
}


def program(machine: str = "") -> bytes:
    """Return the ELF file for a machine, by default this one.

    Raises:
        OSError: nobody wrote it for this machine.
    """
    name, code = elf.of_machine(_CODE, machine)
    return elf.file(name, code + READY + _ALL)


def write(path: str) -> None:
    """Write the program."""
    elf.write(path, program())
