"""A seccomp profile, as Kubernetes and container engines write it, made the kernel's own filter by libseccomp.

The supervisor makes the filter, once for each start of a container, because the profile depends on the container's
capabilities and the filter on the machine. Programs load it themselves, see `processes`: Apptainer and its file systems
stay free of it. libseccomp is a library that Apptainer needs anyway.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

# seccomp.h of libseccomp.
_ACTIONS = {
    "SCMP_ACT_KILL": 0,
    "SCMP_ACT_KILL_THREAD": 0,
    "SCMP_ACT_KILL_PROCESS": 0x80000000,
    "SCMP_ACT_TRAP": 0x00030000,
    "SCMP_ACT_ERRNO": 0x00050000,
    "SCMP_ACT_LOG": 0x7FFC0000,
    "SCMP_ACT_ALLOW": 0x7FFF0000,
}
_COMPARISONS = {f"SCMP_CMP_{name}": code for code, name in enumerate(("NE", "LT", "LE", "EQ", "GE", "GT"), 1)}
_MASKED = 7
_COMPARISONS["SCMP_CMP_MASKED_EQ"] = _MASKED
_NO_SYSCALL = -1
_OPTIMIZE, _BINARY_TREE = 8, 2
# What profiles call a machine: as Go does, and as libseccomp does.
_MACHINES = {"x86_64": ("amd64", "SCMP_ARCH_X86_64"), "aarch64": ("arm64", "SCMP_ARCH_AARCH64")}


class SeccompError(Exception):
    """There is no such profile, or it cannot be a filter."""


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


def load(path: str, capabilities: Iterable[str]) -> bytes:
    """Return the filter of a profile.

    Args:
        path: of the profile.
        capabilities: of the container, names without `CAP_`.

    Raises:
        SeccompError: there is none, or it is wrong; the message names it.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return compiled(json.load(file), frozenset(capabilities))
    except OSError as error:
        raise SeccompError(f"cannot load seccomp profile {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, SeccompError) as error:
        raise SeccompError(f"seccomp profile {path} is wrong: {type(error).__name__} {error}") from error


def compiled(profile: dict[str, Any], capabilities: frozenset[str]) -> bytes:
    """Return a profile as instructions of the kernel's packet filter.

    Raises:
        SeccompError: libseccomp refuses.
        KeyError: the profile lacks something, or has a word that is none.
        OSError: there is no libseccomp.
    """
    library = _library()
    default = _action(profile["defaultAction"], profile.get("defaultErrnoRet"))
    context = ctypes.c_void_p(library.seccomp_init(default))
    if not context:
        raise SeccompError("libseccomp takes no such defaultAction")
    try:
        _expect(library.seccomp_attr_set(context, _OPTIMIZE, _BINARY_TREE), "optimisation")
        for name in _machines(profile):
            token = library.seccomp_arch_resolve_name(name.encode())
            _expect(library.seccomp_arch_add(context, token), f"architecture {name}", errno.EEXIST)
        for call in _applying(profile, capabilities):
            if (action := _action(call["action"], call.get("errnoRet"))) != default:
                _add(library, context, action, call)
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = (ctypes.c_uint32,)
    library.seccomp_arch_resolve_name.restype = ctypes.c_uint32
    library.seccomp_arch_add.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    library.seccomp_attr_set.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32)
    library.seccomp_rule_add_array.argtypes = (
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint),
        ctypes.POINTER(_Comparison),
    )
    return library


def _action(name: str, number: int | None) -> int:
    code = _ACTIONS[name]
    return code | (errno.EPERM if number is None else number & 0xFFFF) if name == "SCMP_ACT_ERRNO" else code


def _machines(profile: dict[str, Any]) -> Iterator[str]:
    """Give the other machines whose programs run here too, as libseccomp calls them."""
    own = _MACHINES[os.uname().machine][1]
    given = list(profile.get("architectures") or ())
    for entry in profile.get("archMap") or ():
        if entry["architecture"] == own:
            given += entry.get("subArchitectures") or ()
    yield from (name.removeprefix("SCMP_ARCH_").lower() for name in given if name != own)


def _applying(profile: dict[str, Any], capabilities: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Give the rules that hold for this machine and these capabilities."""
    machine, kernel = _MACHINES[os.uname().machine][0], _version(os.uname().release)
    for call in profile.get("syscalls") or ():
        only, never = call.get("includes") or {}, call.get("excludes") or {}
        if machine in (never.get("arches") or ()) or capabilities & _bare(never):
            continue
        if only.get("arches") and machine not in only["arches"]:
            continue
        if not _bare(only) <= capabilities or kernel < _version(only.get("minKernel") or "0"):
            continue
        yield call


def _bare(condition: dict[str, Any]) -> frozenset[str]:
    return frozenset(name.removeprefix("CAP_") for name in condition.get("caps") or ())


def _version(text: str) -> tuple[int, ...]:
    parts = text.split("-")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())


def _add(library: ctypes.CDLL, context: ctypes.c_void_p, action: int, call: dict[str, Any]) -> None:
    for name in call.get("names") or [call["name"]]:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == _NO_SYSCALL:
            # A newer, or another machine's; nobody can call it by a number that is not known.
            continue
        for comparisons in _rules(call.get("args") or []):
            made = (_Comparison * len(comparisons))(*comparisons)
            done = library.seccomp_rule_add_array(context, action, number, len(comparisons), made)
            _expect(done, f"rule of {name}", errno.EEXIST)


def _rules(arguments: list[dict[str, Any]]) -> list[list[_Comparison]]:
    """Return what must hold together; two conditions on one argument are two rules, as with container engines."""
    made = [_comparison(argument) for argument in arguments]
    indexes = [one.arg for one in made]
    return [[one] for one in made] if len(set(indexes)) < len(indexes) else [made]


def _comparison(document: dict[str, Any]) -> _Comparison:
    kind = _COMPARISONS[document["op"]]
    return _Comparison(document["index"], kind, document["value"], document.get("valueTwo") or 0)


def _exported(library: ctypes.CDLL, context: ctypes.c_void_p) -> bytes:
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        _expect(library.seccomp_export_bpf(context, descriptor), "export")
        file.seek(0)
        return file.read()


def _expect(result: int, what: str, well: int = 0) -> None:
    if result not in (0, -well):
        raise SeccompError(f"{what}: {os.strerror(-result)}")
