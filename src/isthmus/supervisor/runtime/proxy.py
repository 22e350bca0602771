"""A program that stands in a container for one that runs elsewhere: the ranks of an MPI program behind a wrapper.

It must run in any image, so it is made here (`elf`). Whoever starts it need not know: it has an exit code, takes
signals, and its streams are those of the other one. It connects to a socket of the supervisor, hands it its streams,
writes the number of each signal that it gets, reads an exit code, and ends with that. What it was started with (words,
variables, folder) the supervisor reads in /proc. Its own codes: 126 for a supervisor that does not listen, 255 for one
that went away.
"""

from __future__ import annotations

import struct

from isthmus.supervisor.runtime import elf

FOLDER = "/.isthmus/ranks"
PROGRAM = f"{FOLDER}/start"
SOCKET = "ask"
STREAMS = 3

_MESSAGE, _VECTOR, _CONTROL, _ADDRESS, _PATH_BYTES = 8, 64, 80, 112, 108
_AF_UNIX, _SOL_SOCKET, _SCM_RIGHTS = 1, 1, 1
_HEAD = struct.Struct("<QII")
# By each line its place in the code, which jumps name.
_CODE = {
    "x86_64": bytes.fromhex(
        "4881ec00010000"  # 0: sub rsp,0x100
        "b80e000000"  # 7: mov eax,0xe (rt_sigprocmask)
        "31ff"  # c: xor edi,edi
        "be78004000"  # e: mov esi,0x400078
        "31d2"  # 13: xor edx,edx
        "41ba08000000"  # 15: mov r10d,0x8
        "0f05"  # 1b: syscall
        "b829000000"  # 1d: mov eax,0x29 (socket)
        "bf01000000"  # 22: mov edi,0x1
        "be05000800"  # 27: mov esi,0x80005
        "31d2"  # 2c: xor edx,edx
        "0f05"  # 2e: syscall
        "4189c4"  # 30: mov r12d,eax
        "b82a000000"  # 33: mov eax,0x2a (connect)
        "4489e7"  # 38: mov edi,r12d
        "bee8004000"  # 3b: mov esi,0x4000e8
        "ba6e000000"  # 40: mov edx,0x6e
        "0f05"  # 45: syscall
        "85c0"  # 47: test eax,eax
        "0f88b5000000"  # 49: js 104
        "b82e000000"  # 4f: mov eax,0x2e (sendmsg)
        "4489e7"  # 54: mov edi,r12d
        "be80004000"  # 57: mov esi,0x400080
        "31d2"  # 5c: xor edx,edx
        "0f05"  # 5e: syscall
        "85c0"  # 60: test eax,eax
        "0f889c000000"  # 62: js 104
        "b821010000"  # 68: mov eax,0x121 (signalfd4)
        "bfffffffff"  # 6d: mov edi,0xffffffff
        "be78004000"  # 72: mov esi,0x400078
        "ba08000000"  # 77: mov edx,0x8
        "4531d2"  # 7c: xor r10d,r10d
        "0f05"  # 7f: syscall
        "4189c5"  # 81: mov r13d,eax
        "44892424"  # 84: mov dword [rsp],r12d
        "c744240401000000"  # 88: mov dword [rsp+0x4],0x1
        "44896c2408"  # 90: mov dword [rsp+0x8],r13d
        "c744240c01000000"  # 95: mov dword [rsp+0xc],0x1
        "b807000000"  # 9d: mov eax,0x7 (poll)
        "4889e7"  # a2: mov rdi,rsp
        "be02000000"  # a5: mov esi,0x2
        "baffffffff"  # aa: mov edx,0xffffffff
        "0f05"  # af: syscall
        "66837c240600"  # b1: cmp word [rsp+0x6],0x0
        "7527"  # b7: jne e0
        "31c0"  # b9: xor eax,eax (read)
        "4489ef"  # bb: mov edi,r13d
        "488d742440"  # be: lea rsi,[rsp+0x40]
        "ba80000000"  # c3: mov edx,0x80
        "0f05"  # c8: syscall
        "b801000000"  # ca: mov eax,0x1 (write)
        "4489e7"  # cf: mov edi,r12d
        "488d742440"  # d2: lea rsi,[rsp+0x40]
        "ba04000000"  # d7: mov edx,0x4
        "0f05"  # dc: syscall
        "eba4"  # de: jmp 84
        "c7442440ff000000"  # e0: mov dword [rsp+0x40],0xff
        "31c0"  # e8: xor eax,eax (read)
        "4489e7"  # ea: mov edi,r12d
        "488d742440"  # ed: lea rsi,[rsp+0x40]
        "ba04000000"  # f2: mov edx,0x4
        "0f05"  # f7: syscall
        "8b7c2440"  # f9: mov edi,dword [rsp+0x40]
        "b8e7000000"  # fd: mov eax,0xe7 (exit_group)
        "0f05"  # 102: syscall
        "bf7e000000"  # 104: mov edi,0x7e
        "ebf2"  # 109: jmp fd
    ),
    "aarch64": b"".join(
        struct.pack("<I", word)
        for word in (
            0xD10403FF,  # 0: sub sp, sp, #0x100
            0xD2800000,  # 4: mov x0, #0x0
            0xD2800F01,  # 8: mov x1, #0x78
            0xF2A00801,  # c: movk x1, #0x40, lsl #16
            0xD2800002,  # 10: mov x2, #0x0
            0xD2800103,  # 14: mov x3, #0x8
            0xD28010E8,  # 18: mov x8, #0x87 (rt_sigprocmask)
            0xD4000001,  # 1c: svc #0x0
            0xD2800020,  # 20: mov x0, #0x1
            0xD28000A1,  # 24: mov x1, #0x5
            0xF2A00101,  # 28: movk x1, #0x8, lsl #16
            0xD2800002,  # 2c: mov x2, #0x0
            0xD28018C8,  # 30: mov x8, #0xc6 (socket)
            0xD4000001,  # 34: svc #0x0
            0xAA0003F3,  # 38: mov x19, x0
            0xD2801D01,  # 3c: mov x1, #0xe8
            0xF2A00801,  # 40: movk x1, #0x40, lsl #16
            0xD2800DC2,  # 44: mov x2, #0x6e
            0xD2801968,  # 48: mov x8, #0xcb (connect)
            0xD4000001,  # 4c: svc #0x0
            0xB7F80620,  # 50: tbnz x0, #63, 114
            0xAA1303E0,  # 54: mov x0, x19
            0xD2801001,  # 58: mov x1, #0x80
            0xF2A00801,  # 5c: movk x1, #0x40, lsl #16
            0xD2800002,  # 60: mov x2, #0x0
            0xD2801A68,  # 64: mov x8, #0xd3 (sendmsg)
            0xD4000001,  # 68: svc #0x0
            0xB7F80540,  # 6c: tbnz x0, #63, 114
            0x92800000,  # 70: mov x0, #0xffffffffffffffff
            0xD2800F01,  # 74: mov x1, #0x78
            0xF2A00801,  # 78: movk x1, #0x40, lsl #16
            0xD2800102,  # 7c: mov x2, #0x8
            0xD2800003,  # 80: mov x3, #0x0
            0xD2800948,  # 84: mov x8, #0x4a (signalfd4)
            0xD4000001,  # 88: svc #0x0
            0xAA0003F4,  # 8c: mov x20, x0
            0x52800035,  # 90: mov w21, #0x1
            0x290057F3,  # 94: stp w19, w21, [sp]
            0x290157F4,  # 98: stp w20, w21, [sp, #8]
            0x910003E0,  # 9c: mov x0, sp
            0xD2800041,  # a0: mov x1, #0x2
            0xD2800002,  # a4: mov x2, #0x0
            0xD2800003,  # a8: mov x3, #0x0
            0xD2800104,  # ac: mov x4, #0x8
            0xD2800928,  # b0: mov x8, #0x49 (ppoll)
            0xD4000001,  # b4: svc #0x0
            0x79400FE0,  # b8: ldrh w0, [sp, #6]
            0x35000180,  # bc: cbnz w0, ec
            0xAA1403E0,  # c0: mov x0, x20
            0x910103E1,  # c4: add x1, sp, #0x40
            0xD2801002,  # c8: mov x2, #0x80
            0xD28007E8,  # cc: mov x8, #0x3f (read)
            0xD4000001,  # d0: svc #0x0
            0xAA1303E0,  # d4: mov x0, x19
            0x910103E1,  # d8: add x1, sp, #0x40
            0xD2800082,  # dc: mov x2, #0x4
            0xD2800808,  # e0: mov x8, #0x40 (write)
            0xD4000001,  # e4: svc #0x0
            0x17FFFFEB,  # e8: b 94
            0x52801FE0,  # ec: mov w0, #0xff
            0xB90043E0,  # f0: str w0, [sp, #64]
            0xAA1303E0,  # f4: mov x0, x19
            0x910103E1,  # f8: add x1, sp, #0x40
            0xD2800082,  # fc: mov x2, #0x4
            0xD28007E8,  # 100: mov x8, #0x3f (read)
            0xD4000001,  # 104: svc #0x0
            0xB94043E0,  # 108: ldr w0, [sp, #64]
            0xD2800BC8,  # 10c: mov x8, #0x5e (exit_group)
            0xD4000001,  # 110: svc #0x0
            0xD2800FC0,  # 114: mov x0, #0x7e
            0x17FFFFFD,  # 118: b 10c
        )
    ),
}


def _data() -> bytes:
    """Return all signals, struct msghdr with its parts (one byte, and the streams' descriptors), struct sockaddr_un."""
    rights = _HEAD.pack(_HEAD.size + 4 * STREAMS, _SOL_SOCKET, _SCM_RIGHTS) + struct.pack("<3I", 0, 1, 2)
    message = struct.pack("<QQQQQQQ", 0, 0, elf.DATA + _VECTOR, 1, elf.DATA + _CONTROL, len(rights), 0)
    vector = struct.pack("<QQ", elf.DATA, 1)
    address = struct.pack(f"<H{_PATH_BYTES}s", _AF_UNIX, f"{FOLDER}/{SOCKET}".encode())
    parts = {0: b"\xff" * 8, _MESSAGE: message, _VECTOR: vector, _CONTROL: rights, _ADDRESS: address}
    ends = [*list(parts)[1:], 224]
    return b"".join(part.ljust(end - place, b"\0") for (place, part), end in zip(parts.items(), ends, strict=True))


def program(machine: str = "") -> bytes:
    """Return the ELF file for a machine, by default this one.

    Raises:
        OSError: nobody wrote it for this machine.
    """
    name, code = elf.of_machine(_CODE, machine)
    return elf.file(name, code, _data())
