"""What a typical change costs in files of src: a volume kind two, a reason one line, a driver its folder and one line.

A word that stands in another file is a place that the author of the next one must find.
"""

import ast
import re
from pathlib import Path

import pytest

from handbook import generate, reasons, variables
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.volumes import registry
from isthmus.model.network import Driver
from isthmus.network.drivers.registry import NAMES
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


# Files of roles that name a driver beside its own folders, and why.
LEFT_IN_ROLES = {"roles/network/meta/argument_specs.yml": "Ansible reads a role's arguments from one file"}
# Words of Kubernetes that mean other things, too: phases, and conditions of objects.
PHASES = {"Failed", "Created"}


@pytest.mark.parametrize("reason", [*Reason, *EventReason])
def test_reason_stands_in_its_list_alone(reason):
    """Adding one is a line there; events, the reference and statuses have it from there."""
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
    events = {one.event for one in Reason}
    word = f"{type(reason).__name__}.{reason.name}"
    used = any(re.search(rf"\b{re.escape(word)}\b", text) for text in TEXTS)
    own = any(f"cls.{reason.name}" in text for text in TEXTS)
    assert used or own or (isinstance(reason, EventReason) and reason.value in events)


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


# "private" is an English word, and what it needs is what every driver has.
@pytest.mark.parametrize("driver", [driver for driver in NAMES if driver is not Driver.PRIVATE])
def test_driver_is_named_in_its_folders_and_one_line(driver):
    """The plugin's list of drivers and the choices of variables are generated from that line (test_generated)."""
    files = [*tree.files("src/isthmus/*.py"), *tree.files("src/spank/*.c"), *tree.files("src/spank/*.h")]
    other = {tree.shown(path) for path in files if tree.driver_pattern(driver).search(path.read_text())}
    own = {path for path in other if f"/{driver}/" in path or path.endswith(f"/{driver}.py")}
    assert other - own == {"src/isthmus/model/network.py", generate.HEADER}


@pytest.mark.parametrize("driver", [driver for driver in NAMES if driver is not Driver.PRIVATE])
def test_role_names_a_driver_in_its_folders_alone(driver):
    """Its tasks, templates and variables are in folders of its name, modules have it in theirs."""
    files = [path for path in tree.files("roles/*.yml", "roles/*.j2", "roles/*.py") if not is_of(driver, path)]
    found = {tree.shown(path) for path in files if tree.driver_pattern(driver).search(hand_written(path))}
    assert found == LEFT_IN_ROLES.keys()
    (arguments,) = LEFT_IN_ROLES
    named = [
        line for line in hand_written(tree.ROOT / arguments).splitlines() if tree.driver_pattern(driver).search(line)
    ]
    assert named
    assert [line for line in named if not line.startswith(f"      network_{driver}_")] == []


def is_of(driver, path):
    """Whether a file is in a folder of the driver's name, or has that name itself."""
    return f"/{driver}/" in tree.shown(path) or path.stem.startswith(f"{driver}_")


def hand_written(path):
    """Return a file without what `make generate` writes: choices, and all of a role's defaults."""
    if path.parent.name == "defaults":
        return ""
    return re.sub(r"choices: \[.*?\]|choices:\n( +- .*\n)+", "", path.read_text())


@pytest.mark.parametrize("name", ["first_variable", "second_variable"])
def test_variable_of_a_role_is_its_argument_and_its_use(name):
    """The default, the reference and the check of its type come from the argument alone."""
    spec = f"---\nargument_specs:\n  main:\n    options:\n      {name}: {{type: int, default: 7, description: Some.}}\n"
    assert generate.defaults(spec) == f"---\n{name}: 7\n"
    assert set(arguments()) <= set(re.findall(r"`(\w+)`", variables.text(tree.ROOT)))


def arguments():
    """Every variable of every role."""
    for path in tree.files("roles/*/meta/argument_specs.yml"):
        for entry in tree.load(path)["argument_specs"].values():
            yield from entry.get("options") or {}
