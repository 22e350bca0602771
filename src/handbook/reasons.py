"""reference/reasons.md: every reason of events, pods, containers and nodes, found in the code and explained here.

Names are read from the code: what an event is written with, what a status or a container's state is given as a reason.
Meanings are below. A name without a meaning, and a meaning without a name, end the build.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from handbook.markdown import code, page, table
from handbook.source import constant, modules
from isthmus.kubelet.pods.verdict import TELLS

_WORD = re.compile(r"(?=.*[a-z])[A-Z][A-Za-z]+")
EVENTS = {
    "BackOff": "a container ends again and again, or its image cannot be had: the next try waits longer",
    "Created": "a container was created",
    "ErrImageNeverPull": "the image is not in the cache, and `imagePullPolicy` is `Never`",
    "Failed": "a container could not be started; the message has the cause",
    "FailedPlan": "what the pod's containers shall be could not be worked out; it is tried again",
    "FailedPostStartHook": "the `postStart` hook of a container failed, and the container was ended",
    "InspectFailed": "the name of an image is none",
    "Killing": "a container, or the pod's job, is being ended, and why",
    "KubeletError": "something that nobody foresaw; it is tried again, and other pods go on",
    "MadeHeadless": "a Service became headless, as there are no addresses of Services here",
    "NotAsElsewhere": "the pod runs, and a field of it has less effect than in other clusters",
    "OOMKilling": "the kernel ended a process of the container, which had used its memory",
    "Pulled": "an image is in the cache, and how long that took",
    "Pulling": "an image is being pulled",
    "Queued": "Slurm has the job and no node for it yet; the message has Slurm's reason",
    "Scheduled": "Slurm gave the job its node",
    "ServicesUnreachable": "the node's network daemon refused the pod's table of Services; it is tried again",
    "SlurmSilent": "Slurm did not answer when the pod was to be submitted; it is tried again",
    "Started": "a container runs",
    "Submitted": "the pod is a Slurm job now, with this number",
    "Unhealthy": "a probe failed, with its words",
    "UnsupportedPod": "an ephemeral container asks for what cannot be",
}
STATES = {
    "Completed": "the container ended with exit code 0",
    "ContainerCannotRun": "a volume, a profile or a folder of the container cannot be made; the message names it",
    "ContainerCreating": "the container waits for its image, for the job's node, or for what is made before it",
    "ContainerStatusUnknown": "the job ended before its supervisor reported how the container did",
    "CrashLoopBackOff": "the container ended, and is started again after a pause that grows to five minutes",
    "CreateContainerConfigError": "a ConfigMap, a Secret or a key of it is missing, or the image's user is not allowed",
    "DeadlineExceeded": "the pod was active for longer than `activeDeadlineSeconds`",
    "ErrImageNeverPull": EVENTS["ErrImageNeverPull"],
    "ErrImagePull": "the image cannot be had; the message has the registry's words",
    "Error": "the container ended with another exit code than 0",
    "FailedCreatePodSandBox": "the pod's RuntimeClass is missing, or its handler is not `apptainer`",
    "FailedMount": "a volume names something that is missing, or cannot be made",
    "FailedSubmit": "Slurm refuses the job now; tried again after 10 s to 5 min",
    "HomeFull": "the home has no room for the pod's folder; tried again after 10 s to 5 min",
    "HomeUnavailable": "the home cannot be read or written just now; tried again",
    "ImagePullBackOff": "the image could not be had, and the next try waits, 10 s to 5 min",
    "InvalidImageName": EVENTS["InspectFailed"],
    "InvalidPlan": "the supervisor could not read what it was told to run: kubelet and node have different versions",
    "NoPlan": "no kubelet told the job within half an hour what to run, so the job ended",
    "NotSubmitted": "the job is submitted when images and volumes are known",
    "OOMKilled": "the kernel ended a process of the container, which had used its memory",
    "PodInitializing": "init containers come first",
    "PostStartHookError": EVENTS["FailedPostStartHook"],
    "StartError": "the program of the container could not be started; the message has the cause",
    "SupervisorError": "the program that runs the pod's containers failed; `slurm.log` in the pod's folder has more",
    "UnsupportedPod": "the pod asks for what cannot be; [Pods](pods.md) lists it. No job was submitted",
}
# Constants of the same shape that are no reasons.
_OTHERS = frozenset(
    {"Failed", "RuntimeDefault", "Succeeded", "Unconfined", "UnknownContainerStatuses", "WaitForFirstConsumer"}
)
_REASON_CALLS = {"refuse": 0, "ImageState": 0, "Verdict": 0, "waiting": 1}


def text(root: Path) -> str:
    """Return the page."""
    return page(
        "# Reasons",
        "What `kubectl describe` and `kubectl get pods` say of a pod in one word, and what each word means, found in"
        " the code of kubelet and supervisor.",
        "## Events",
        _table("event", EVENTS, events(root)),
        "Events of failed pods have the reason of the pod, from the tables below.",
        "## Reasons of pods and containers",
        _table("reason", STATES, states(root)),
        "## What Slurm says",
        "While its job waits, a pod has Slurm's own reason (`Resources`, `Priority`, `QOSMaxJobsPerUserLimit`; see"
        " squeue(1)) at the condition `PodScheduled`. A pod whose job Slurm ended has the job's state as reason:",
        table(("reason", "the job"), ((code(state.value), said) for state, said in TELLS.items())),
        "## Conditions of the node",
        table(("condition", "reason", "message"), sorted((code(a), b, c) for a, b, c in _node(root))),
    )


def events(root: Path) -> set[str]:
    """Return the reasons of events that the code has as words."""
    found = set()
    for _, module in modules(root, "kubelet"):
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                words = [constant(one) for one in node.args]
                kinds = [ast.unparse(one) for one in node.args]
                places = [place for place, kind in enumerate(kinds) if kind.startswith("Kind.")]
                found |= {words[place + 1] for place in places if place + 1 < len(words)}
                found |= _chosen(module, node, places)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("_WAITS", "_ENDS"):
                found |= _values(node.value)
    return found - {""}


def states(root: Path) -> set[str]:
    """Return the reasons of pods and containers."""
    found = set()
    for path, module in modules(root, "kubelet", "supervisor"):
        for node in ast.walk(module):
            found |= set(_given(node))
            if isinstance(node, ast.ClassDef) and node.name == "Unready":
                found |= {constant(one.value) for one in node.body if isinstance(one, ast.Assign)}
        found |= set(_constants(module)) if path.parent.name != "node" else set()
    return {word for word in found if _WORD.fullmatch(word)} - _OTHERS


def _chosen(module: ast.Module, call: ast.Call, places: list[int]) -> set[str]:
    """Return the words of a reason that is a variable: those that its function gives it."""
    names = {ast.unparse(call.args[place + 1]) for place in places if place + 1 < len(call.args)} & {"reason"}
    if not names:
        return set()
    holders = [one for one in ast.walk(module) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [one for one in holders if any(node is call for node in ast.walk(one))]
    assigned = [one.value for holder in inside for one in ast.walk(holder) if isinstance(one, ast.Assign)]
    passed = {one.name for one in inside}
    calls = [one for one in ast.walk(module) if isinstance(one, ast.Call) and _name(one) in passed]
    values = [*assigned, *(word for one in calls for word in one.args)]
    return {word for value in values for word in map(constant, ast.walk(value)) if _WORD.fullmatch(word)}


def _given(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        yield from (constant(one.value) for one in node.keywords if one.arg == "reason")
        place = _REASON_CALLS.get(_name(node))
        if place is not None and place < len(node.args):
            yield constant(node.args[place])
    elif isinstance(node, ast.arguments):
        defaults = dict(zip((one.arg for one in reversed(node.args)), reversed(node.defaults), strict=False))
        yield constant(defaults.get("reason"))


def _constants(module: ast.Module) -> Iterator[str]:
    """Give the words of a module's own constants, and of functions that choose between words."""
    for one in module.body:
        if isinstance(one, ast.Assign) and not isinstance(one.value, ast.Dict | ast.Call):
            yield from (constant(value) for value in ast.walk(one.value))
        if isinstance(one, ast.FunctionDef) and one.name == "_why":
            yield from (constant(value) for value in ast.walk(one))


def _values(held: ast.expr) -> set[str]:
    """Return the reasons of a table: its values, or the first of each."""
    values = held.values if isinstance(held, ast.Dict) else []
    return {constant(one.elts[0]) if isinstance(one, ast.Tuple) else constant(one) for one in values}


def _node(root: Path) -> Iterator[tuple[str, str, str]]:
    for path, module in modules(root, "kubelet"):
        for node in ast.walk(module):
            if path.parent.name == "node" and isinstance(node, ast.Tuple) and len(node.elts) == 4:
                kind, _, reason, message = node.elts
                if constant(kind) and constant(message):
                    words = code(constant(reason)) or "`SlurmAnswers`, `SlurmDoesNotAnswer`"
                    yield constant(kind), words, constant(message)


def _name(call: ast.Call) -> str:
    """Return the last name of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]


def _table(kind: str, meanings: dict[str, str], found: set[str]) -> str:
    if found != set(meanings):
        unexplained, gone = sorted(found - set(meanings)), sorted(set(meanings) - found)
        raise KeyError(f"{kind}s: explain {unexplained} in {__name__}, and remove {gone}, which the code has no more")
    return table((kind, "meaning"), ((code(name), said) for name, said in sorted(meanings.items())))
