"""Profiles, by what the kernel does to a process that has loaded their filter."""

import errno
import json
import platform
import subprocess
import sys

import pytest

from isthmus.supervisor.runtime import seccomp
from isthmus.supervisor.runtime.seccomp import SeccompError

ALLOW, REFUSE = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
# Loads the filter given as hex, then prints for each call its result: its errno, or 0.
_TRY = """\
import ctypes, os, signal, sys
from isthmus.supervisor.runtime import linux
calls = {
    "sync": lambda: os.sync() or 0,
    "getpriority": lambda: os.getpriority(os.PRIO_PROCESS, 0),
    "nice0": lambda: os.setpriority(os.PRIO_PROCESS, 0, 0),
    "nice1": lambda: os.setpriority(os.PRIO_PROCESS, 0, 19),
    "umask": lambda: ctypes.CDLL(None).umask(0o22),
}
linux.no_new_privileges()
linux.filter_calls(bytes.fromhex(sys.argv[1]))
for name in sys.argv[2:]:
    try:
        calls[name]()
        print(0)
    except OSError as error:
        print(error.errno)
"""


def outcome(profile, *calls, capabilities=()):
    """Return errno of each call under a profile."""
    program = seccomp.compiled(profile, frozenset(capabilities))
    done = subprocess.run(
        [sys.executable, "-c", _TRY, program.hex(), *calls], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return [int(line) for line in done.stdout.split()]


def rule(*names, action=REFUSE, **rest):
    return {"names": [*names], "action": action, **rest}


def profile(*rules, **rest):
    return {"defaultAction": ALLOW, "syscalls": [*rules], **rest}


def argument(index, value, op="SCMP_CMP_EQ", **rest):
    return {"index": index, "value": value, "op": op, **rest}


@pytest.mark.parametrize(
    ("rules", "capabilities", "expected"),
    [
        ([], (), [0, 0]),
        ([rule("getpriority")], (), [errno.EPERM, 0]),
        ([rule("getpriority", "no_such_call_at_all", errnoRet=38)], (), [38, 0]),
        ([rule("setpriority", args=[argument(2, 19)])], (), [0, errno.EPERM]),
        ([rule("setpriority", args=[argument(2, 20)])], (), [0, 0]),
        ([rule("setpriority", args=[argument(2, 1, "SCMP_CMP_MASKED_EQ", valueTwo=1)])], (), [0, errno.EPERM]),
        # Two conditions on one argument are two rules.
        ([rule("setpriority", args=[argument(2, 19), argument(2, 5)])], (), [0, errno.EPERM]),
        ([rule("getpriority", includes={"caps": ["CAP_SYS_NICE"]})], (), [0, 0]),
        ([rule("getpriority", includes={"caps": ["CAP_SYS_NICE"]})], ("SYS_NICE",), [errno.EPERM, 0]),
        ([rule("getpriority", excludes={"caps": ["CAP_SYS_NICE"]})], ("SYS_NICE",), [0, 0]),
        ([rule("getpriority", excludes={"caps": ["CAP_SYS_NICE"]})], (), [errno.EPERM, 0]),
        ([rule("getpriority", includes={"arches": ["s390x"]})], (), [0, 0]),
        ([rule("getpriority", includes={"arches": ["amd64", "arm64"]})], (), [errno.EPERM, 0]),
        ([rule("getpriority", excludes={"arches": ["amd64", "arm64"]})], (), [0, 0]),
        ([rule("getpriority", includes={"minKernel": "999.0"})], (), [0, 0]),
        ([rule("getpriority", includes={"minKernel": "3.2"})], (), [errno.EPERM, 0]),
        ([rule("getpriority", action="SCMP_ACT_LOG")], (), [0, 0]),
    ],
)
def test_calls_are_refused_as_the_profile_says(rules, capabilities, expected):
    assert outcome(profile(*rules), "getpriority", "nice1", capabilities=capabilities) == expected


def test_call_that_kills_ends_the_process():
    with pytest.raises(AssertionError, match=r"^\(-31"):
        outcome(profile(rule("umask", action="SCMP_ACT_KILL_PROCESS")), "umask")


def test_other_machines_programs_are_known_too():
    own, other = {"x86_64": ("X86_64", "X86"), "aarch64": ("AARCH64", "ARM")}[platform.machine()]
    mapped = [{"architecture": f"SCMP_ARCH_{own}", "subArchitectures": [f"SCMP_ARCH_{other}"]}]
    alone = seccomp.compiled(profile(rule("umask")), frozenset())
    for reported in ({"archMap": mapped}, {"architectures": [f"SCMP_ARCH_{own}", f"SCMP_ARCH_{other}"]}):
        assert len(seccomp.compiled(profile(rule("umask"), **reported), frozenset())) > len(alone)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot load seccomp profile .*: No such file or directory"),
        ("{", "is wrong: JSONDecodeError"),
        ("{}", "is wrong: KeyError 'defaultAction'"),
        ("[]", "is wrong: TypeError"),
        (json.dumps({"defaultAction": "SCMP_ACT_NOTIFY"}), "is wrong: KeyError 'SCMP_ACT_NOTIFY'"),
        (json.dumps(profile(rule("umask", args=[argument(9, 1)]))), "is wrong: SeccompError rule of umask: Invalid"),
    ],
)
def test_profile_that_is_wrong_is_refused_with_its_name(tmp_path, text, why):
    path = tmp_path / "profile.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SeccompError, match=why) as reported:
        seccomp.load(str(path), ())
    assert str(path) in str(reported.value)
