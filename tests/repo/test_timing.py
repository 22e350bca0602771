"""Time is passed in, and the absence of an event is tested with a clock.

A test that sleeps and then looks proves nothing on a busy machine, and costs its time on every other. Unit tests run in
virtual time (tests/support/virtual_time.py); tests on real systems wait for the next event, or hold a condition for a
stated time with a reason (`stays` in tests/support/wait.py).
"""

import ast
import re

import pytest

from tests.repo import tree

SET = re.compile(r'setattr\(.*"(?:[\w.]+\.)?_?[A-Z_]+_S"')
# Where a test sleeps by itself, and why.
SLEEPS = {
    "tests/attack/test_jobsd.py": "the pause between two measurements",
    "tests/attack/test_network.py": "a flood that has begun",
    "tests/full/test_kubelet_kills.py": "a death at a random moment",
    "tests/integration/kubernetes/test_kubelet_process.py": "a death at a random moment",
    "tests/integration/test_heartbeats.py": "how long etcd is away",
    "tests/integration/test_network_preparing.py": "work that is slow",
    "tests/integration/test_network_store.py": "an etcd that is slow",
    "tests/integration/test_supervisor_channel.py": "how long the kubelet is away",
    "tests/support/fakes/slurm_programs.py": "a fake of Slurm that polls",
    "tests/support/remote/probe.py": "the pause between two connections",
    "tests/support/remote/workflow.py": "a poll with a deadline",
    "tests/support/servers/openstack.py": "a poll with a deadline",
    "tests/support/servers/registries.py": "the period of isthmus-tokend",
    "tests/support/wait.py": "waits and holds",
    "tests/system/kubernetes/test_kubelet_deaths.py": "a death at a random moment",
    "tests/unit/roles/test_registry_credentials.py": "a program that hangs",
    "tests/unit/spank/test_waiting.py": "how long an srun has waited",
}
# Programs of their own: measurements, attackers, and what runs on other machines.
PROGRAMS = ("tests/bench/", "tests/support/attacks/", "tests/support/files/", "tests/support/parallelcluster/")
CLOCK = "tests/support/virtual_time.py"
TESTS = [path for path in tree.files("tests/*.py") if not tree.shown(path).startswith((*PROGRAMS, CLOCK))]


def test_no_constants_of_seconds_are_set_from_outside():
    assert [tree.shown(path) for path in tree.files("tests/*.py") if SET.search(path.read_text())] == []


def is_sleep(node, module):
    """Whether a node is a call of a module's `sleep`, with more than no time."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == f"{module}.sleep"
        and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    )


def bare_sleeps(text):
    """Return the lines with asyncio's sleep that are neither in a loop, which polls, nor in virtual time."""
    nodes = [*ast.walk(ast.parse(text))]
    loops = (ast.While, ast.AsyncFor, ast.For)
    polls = {id(inner) for node in nodes if isinstance(node, loops) for inner in ast.walk(node)}
    sleeps = [node for node in nodes if is_sleep(node, "asyncio") and id(node) not in polls]
    return [] if "virtual_time" in text else [node.lineno for node in sleeps]


def test_tests_sleep_in_few_places():
    texts = {tree.shown(path): text for path in TESTS if "time.sleep" in (text := path.read_text())}
    found = {path for path, text in texts.items() if any(is_sleep(node, "time") for node in ast.walk(ast.parse(text)))}
    assert found == SLEEPS.keys()


@pytest.mark.parametrize("path", [path for path in TESTS if "asyncio.sleep" in path.read_text()], ids=tree.shown)
def test_loops_sleep_in_virtual_time_or_poll(path):
    assert bare_sleeps(path.read_text()) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("await asyncio.sleep(0.1)\nassert not done", [1]),
        ("while not done:\n    await asyncio.sleep(0.1)", []),
        ("await asyncio.sleep(0)", []),
        ("from tests.support import virtual_time\nawait asyncio.sleep(60)", []),
    ],
)
def test_rule_sees_a_bare_sleep(text, lines):
    assert bare_sleeps(text) == lines
