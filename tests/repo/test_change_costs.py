"""What a typical change costs in files of src: a kind of volumes two, a reason of pods one line.

A word that stands in another file is a place that whoever adds the next one must find.
"""

import ast
import re
from pathlib import Path

import pytest

from handbook import reasons
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.volumes import registry
from isthmus.podproto.reasons import Reason
from tests.repo import tree

KUBELET, SUPERVISOR = "src/isthmus/kubelet/volumes", "src/isthmus/supervisor/volumes"
# What is a word of its own elsewhere: a container has an image, variables come from Secrets.
SHARED = {"image", "secret", "ephemeral"}
# The volume behind a claim, not that of a pod; and a PersistentVolume's own words.
OF_PERSISTENT_VOLUMES = {"src/isthmus/kubelet/objects/claims.py", f"{KUBELET}/claim.py"}


def words(path):
    """Return the constant texts of a module, without its docstrings."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    docs = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    return {one.value for one in nodes if isinstance(one, ast.Constant) and id(one) not in docs}


HOLDERS = {tree.shown(path): words(path) for path in tree.files("src/isthmus/kubelet/*.py")}
SOURCES = {tree.shown(path): words(path) for path in tree.files("src/isthmus/supervisor/*.py")}

TEXTS = [path.read_text() for path in tree.files("src/isthmus/kubelet/*.py", "src/isthmus/supervisor/*.py")]
TEXTS += [path.read_text() for path in tree.files("src/isthmus/podproto/*.py")]


def module(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("persistent_Volume_Claim", "claim").lower()


@pytest.mark.parametrize("name", sorted(registry.kinds().keys() - SHARED))
def test_kind_of_volumes_is_named_in_its_own_file_of_the_kubelet(name):
    found = {path for path, known in HOLDERS.items() if name in known}
    # What variables of containers come from has the same name.
    shared = OF_PERSISTENT_VOLUMES if name == "hostPath" else {"src/isthmus/kubelet/translate/pod.py"}
    assert found - shared == {f"{KUBELET}/{module(name)}.py"}


@pytest.mark.parametrize("kind", ["dir", "memory", "files", "host", "image"])
def test_kind_of_the_plan_is_asked_for_in_its_own_file_of_the_supervisor(kind):
    """Nobody compares a volume's kind with a word: each asks the kind what holds for it."""
    assert f"{SUPERVISOR}/{kind}.py" in SOURCES
    compared = [
        f"{tree.shown(path)}:{node.lineno}"
        for path in tree.files("src/isthmus/supervisor/*.py", "src/isthmus/podproto/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == "volume.kind"
    ]
    assert compared == []


# Words of Kubernetes that mean other things, too: phases, and conditions of objects.
PHASES = {"Failed", "Created"}


@pytest.mark.parametrize("reason", [*Reason, *EventReason])
def test_reason_stands_in_its_list_alone(reason):
    """Whoever adds one writes a line there; events, the reference and statuses have it from there."""
    lists = {"src/isthmus/podproto/reasons.py", "src/isthmus/kubelet/status/event_reasons.py"}
    found = {path for path, known in {**HOLDERS, **SOURCES}.items() if reason.value in known}
    assert found <= lists or reason.value in PHASES


def test_each_reason_is_in_the_reference():
    page = reasons.text(tree.ROOT)
    assert not [reason for reason in (*Reason, *EventReason) if f"`{reason.value}`" not in page]
    assert not [reason for reason in (*Reason, *EventReason) if reason.meaning not in page]


@pytest.mark.parametrize("reason", [*Reason, *EventReason], ids=repr)
def test_reason_is_used(reason):
    """One that nobody gives any more is not explained either."""
    told = {one.event for one in Reason}
    word = f"{type(reason).__name__}.{reason.name}"
    used = any(re.search(rf"\b{re.escape(word)}\b", text) for text in TEXTS)
    own = any(f"cls.{reason.name}" in text for text in TEXTS)
    assert used or own or (isinstance(reason, EventReason) and reason.value in told)


def test_event_of_a_reason_is_one_of_the_list():
    assert {reason.event for reason in Reason if reason.event} <= set(EventReason)


def test_events_are_written_with_reasons_of_the_list():
    """A word in a call would be missing in the reference."""
    calls = [
        f"{tree.shown(path)}:{node.lineno}"
        for path in tree.files("src/isthmus/kubelet/*.py")
        for node in ast.walk(ast.parse(Path(path).read_text()))
        if isinstance(node, ast.Call)
        for kind, reason in zip(node.args, node.args[1:], strict=False)
        if ast.unparse(kind).startswith("Kind.") and isinstance(reason, ast.Constant)
    ]
    assert calls == []
