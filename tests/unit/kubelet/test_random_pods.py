"""No pod ends the kubelet: each gets a plan and a job that say what it says, a wait, or a refusal; always a status."""

import json
import re
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.kubelet.admit import pod as refusals
from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.slurm import script
from isthmus.kubelet.status import events
from isthmus.kubelet.status import pod as status
from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_inputs import TokenRequest
from isthmus.model.pod_job import JobState
from isthmus.podproto.expansion import constant, expand, expand_known
from isthmus.podproto.plan import to_json
from tests.support.pods.objects import IMAGE, SETTINGS, resolved
from tests.support.pods.random_pods import pods
from tests.support.pods.statuses import at, ended, job, report, running, waiting

# A busy machine is no failure, and nothing is kept in the tree.
QUIET = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
THOUSAND = settings(QUIET, max_examples=1000)
FOUND = resolved(
    images={"app": IMAGE, "root": replace(IMAGE, user="0"), "bare": replace(IMAGE, entrypoint=(), cmd=())},
    config_maps={"a": {"data": {"a": "$(A)", "c": "1"}}},
    secrets={"a": {"data": {"a": "JCQ="}}, "b-1": {}},
    volumes={"a": {"spec": {"hostPath": {"path": "/data"}}}},
    tokens={TokenRequest(): "token"},
)
WORD = re.compile(r"--[a-z][a-z-]*(=[^\0]*)?")
STATES = st.one_of(st.none(), st.sampled_from(JobState))
CONTAINERS = st.sampled_from(
    [waiting(), waiting("CrashLoopBackOff", last=ended(1)), running(), running(ready=False), ended(0), ended(9)]
)


@THOUSAND
@given(pods(), STATES, st.sampled_from(["starting", "running", "ended", None]), st.lists(CONTAINERS, max_size=4))
def test_pod_gets_a_plan_or_a_reason_and_always_a_status(pod, state, phase, reported):
    check_answer(pod)
    check_status(pod, state, phase, reported)


def check_answer(pod):
    reported = refusals.problems(pod, SETTINGS)
    if reported:
        assert all(isinstance(problem, str) and len(problem) > 20 for problem in reported)
        assert status.refused(pod, reported, at(0))["phase"] == "Failed"
        return
    try:
        check_plan(pod, translate.plan(pod, FOUND))
    except UnreadyError as error:
        assert status.unready(pod, error, {}, at(0))["phase"] == "Pending"
    check_job(translate.job(pod, SETTINGS))


def check_plan(pod, plan):
    spec, reported = pod["spec"], json.loads(json.dumps(to_json(plan)))
    for kind, key in (("init", "initContainers"), ("containers", "containers")):
        assert [one["name"] for one in reported[kind]] == [one["name"] for one in spec[key]]
    volumes = {volume["name"] for volume in reported["volumes"]}
    for one, text in zip(
        [*reported["init"], *reported["containers"]], [*spec["initContainers"], *spec["containers"]], strict=True
    ):
        assert {mount["volume"] for mount in one["mounts"]} <= volumes
        assert len(one["mounts"]) == len(text.get("volumeMounts") or ())
        assert one["argv"]
        assert one["sidecar"] == (text.get("restartPolicy") == "Always")
        nonroot = {**(spec.get("securityContext") or {}), **(text.get("securityContext") or {})}
        assert not (nonroot.get("runAsNonRoot") and (one["user"] or {"uid": 0})["uid"] == 0)
    assert reported["restart_policy"] == spec.get("restartPolicy", "Always")


def check_job(found):
    assert all(WORD.fullmatch(word) for word in found.options)
    assert not [word for word in found.options if word.startswith(("--wrap", "--uid", "--error", "--requeue"))]
    assert [word for word in found.options if word.startswith("--output=")] == [f"--output={found.folder}/slurm.log"]
    assert script.text(found).startswith("#!/bin/sh\n")


def check_status(pod, state, phase, states):
    names = [one["name"] for kind in ("containers", "initContainers") for one in pod["spec"][kind]]
    reported = dict(zip(names, states, strict=False))
    slurm = job(state) if state else None
    found = status.pod_status(pod, report(phase, **reported) if phase else None, slurm, {}, at(60))
    json.dumps(found)
    assert found["phase"] in ("Pending", "Running", "Succeeded", "Failed")
    if state and state.ended:
        assert found["phase"] in ("Succeeded", "Failed")
        assert not [one for one in found.get("containerStatuses", ()) if one["ready"]] or phase == "ended"
    if found["phase"] == "Succeeded":
        assert all(reported[one["name"]]["exit_code"] == 0 for one in pod["spec"]["containers"])
    assert events.changes(found, found, slurm) == []


PIECES = st.lists(st.sampled_from(["$", "(", ")", "$(A)", "$(B)", "$(IP)", "$$", "A", " "]), max_size=6).map("".join)


@QUIET
@given(st.lists(st.tuples(st.sampled_from(["A", "B", "C"]), PIECES), max_size=3), PIECES)
def test_expanding_in_two_places_is_expanding_in_one(entries, text):
    """What is left for the node, filled in there, is what one expansion with all known would give."""
    facts = {"IP": "192.0.2.7"}
    known, here = dict(facts), {"IP": "$(IP)"}
    for name, value in entries:
        known[name], here[name] = plain(value, known), expand_known(value, here)
    assert expand(expand_known(text, here), facts) == plain(text, known)


def plain(text, known):
    """Expand as Kubernetes does, in one place."""
    return re.sub(r"\$\$|\$\(([^)]*)\)", lambda m: "$" if m[1] is None else known.get(m[1], m[0]), text)


def test_constant_is_the_plain_text():
    assert constant(expand_known("$$(A) $(B)", {"B": "$$"})) == "$(A) $"
