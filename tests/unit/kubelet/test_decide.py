"""What is done for a pod in each state."""

from dataclasses import replace

import pytest

from isthmus.kubelet.pods.decision import actions
from isthmus.kubelet.pods.decision.decide import decide
from isthmus.kubelet.pods.decision.state import Held, Link, Pauses, PodState, Prepared, Stop
from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_job import JobState
from tests.support.pods.objects import SETTINGS, container, pod, resolved
from tests.support.pods.statuses import at, job, report, running, text

POD = pod(container("app"))
PLAN = translate.plan(POD, resolved())
PREPARED = Prepared(PLAN, (), {})
DELETED = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-02T03:01:30Z"}}
NEW = PodState(POD, SETTINGS, at(60), 100.0)
FREE = replace(NEW, is_adopted=True)
PENDING = replace(FREE, number="12", is_watched=True, job=job(JobState.PENDING))
RUNNING = replace(PENDING, job=job())
HERE = Link("supervisor", "12", "c1", has_plan=True, is_attached=True, is_greeted=True)
LINKED = replace(RUNNING, link=HERE, report=report(app=running(image_name="app")))


def done(state, *kinds):
    """Return the actions for a state but for what it shows, and the work."""
    found = decide(state)
    return [one for one in found.actions if not isinstance(one, actions.Publish)], set(found.work)


def shown(state):
    """Return the status that is written, if one is."""
    return next((one.status for one in decide(state).actions if isinstance(one, actions.Publish)), None)


def gone(state):
    return replace(state, is_gone=True)


def deleted(state):
    return replace(state, pod=DELETED)


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (NEW, ([actions.Adopt()], set())),
        (deleted(NEW), ([actions.Adopt()], set())),
        (FREE, ([], {actions.Prepare()})),
        (replace(FREE, prepared=PREPARED), ([actions.Submit()], set())),
        (replace(FREE, held=Held(101.0)), ([], set())),
        (replace(FREE, held=Held(100.0)), ([actions.Retry()], set())),
        (replace(FREE, problems=("no",)), ([], set())),
        (replace(FREE, pod={**POD, "status": {"phase": "Failed"}}), ([], set())),
        (deleted(FREE), ([actions.Remove()], set())),
        (deleted(replace(FREE, prepared=PREPARED)), ([actions.Remove()], set())),
        (gone(replace(FREE, held=Held(101.0))), ([actions.Remove()], set())),
    ],
)
def test_pod_without_a_job(state, wanted):
    assert done(state) == wanted


def link(**changes):
    return replace(RUNNING, link=replace(HERE, **changes))


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (replace(PENDING, is_watched=False), ([actions.Watch()], set())),
        (replace(PENDING, others=("11", "13")), ([actions.Cancel("11"), actions.Cancel("13")], set())),
        (link(job="11", is_attached=False), ([actions.Reject("supervisor")], set())),
        (link(is_attached=False), ([actions.Attach("supervisor")], set())),
        (LINKED, ([], set())),
        (link(has_plan=False, is_greeted=False), ([], {actions.Greet("supervisor"), actions.Prepare("c1")})),
        (replace(link(has_plan=False), prepared=PREPARED), ([actions.SendPlan("supervisor", PLAN)], set())),
        (replace(link(has_plan=False, is_greeted=False), prepared=PREPARED), ([], {actions.Greet("supervisor")})),
        (replace(link(has_plan=False), prepared=replace(PREPARED, plan=None)), ([], {actions.Prepare("c1")})),
        (replace(link(has_plan=False), held=Held(101.0)), ([], set())),
        (replace(link(has_plan=False), held=Held(99.0)), ([actions.Retry()], set())),
        (replace(RUNNING, job=job(JobState.COMPLETED)), ([actions.Finish()], set())),
        (replace(RUNNING, job=job(JobState.COMPLETED), is_finished=True), ([], set())),
        (deleted(replace(RUNNING, job=job(JobState.COMPLETED), is_finished=True)), ([actions.Remove()], set())),
    ],
)
def test_pod_with_a_job(state, wanted):
    assert done(state) == wanted


def test_plan_of_other_images_is_made_again():
    changed = pod(container("app", image="web"))
    state = replace(link(has_plan=False), prepared=PREPARED, pod=changed)
    assert done(state) == ([], {actions.Prepare("c1")})


STOPPED = Stop(105.0)


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (LINKED, [actions.BeginStop()]),
        (replace(LINKED, stop=STOPPED), [actions.SendStop("supervisor", 30, 30)]),
        (replace(LINKED, stop=Stop(105.0, ("supervisor", 30))), []),
        (replace(LINKED, stop=Stop(105.0, ("supervisor", 60))), [actions.SendStop("supervisor", 30, 30)]),
        (replace(LINKED, stop=Stop(105.0, ("another", 30))), [actions.SendStop("supervisor", 30, 30)]),
        (replace(LINKED, stop=Stop(100.0, ("supervisor", 30))), [actions.Cancel("12")]),
        (replace(RUNNING, stop=STOPPED), []),
        (replace(RUNNING, stop=Stop(100.0)), [actions.Cancel("12")]),
        (replace(RUNNING, stop=Stop(115.0, cancelled_s=100.0)), []),
        (replace(PENDING, stop=STOPPED), [actions.Cancel("12")]),
        (replace(PENDING, stop=Stop(115.0, cancelled_s=99.5)), []),
        (replace(PENDING, stop=Stop(115.0, cancelled_s=99.0)), [actions.Cancel("12")]),
        (replace(PENDING, job=None, stop=Stop(100.0)), [actions.Cancel("12")]),
    ],
)
def test_deleted_pod_is_brought_to_its_end(state, wanted):
    assert done(deleted(state)) == (wanted, set())


def test_pod_that_the_api_has_no_more_has_no_grace():
    assert done(gone(replace(LINKED, stop=STOPPED)))[0] == [actions.SendStop("supervisor", 0, 0)]
    assert shown(gone(LINKED)) is None


def test_deleted_pod_gets_no_plan():
    assert done(deleted(replace(link(has_plan=False), stop=STOPPED, prepared=PREPARED)))[0] == [
        actions.SendStop("supervisor", 30, 30)
    ]


def test_pod_beyond_its_deadline_is_stopped_and_not_removed():
    late = replace(LINKED, pod=pod(container("app"), activeDeadlineSeconds=50))
    assert done(late)[0] == [actions.BeginStop()]
    assert shown(late)["reason"] == "DeadlineExceeded"
    early = replace(late, now=at(40))
    assert done(early)[0] == []
    assert decide(early).look_in_s == 10.0


def test_containers_of_a_running_pod_are_joined_and_replaced():
    state = replace(LINKED, pod=pod(container("app", image="web"), ephemeralContainers=[container("debug")]))
    assert done(state) == ([], {actions.Join("supervisor", "debug"), actions.Replace("supervisor", "app", "web")})
    reported = replace(state, report=report(app=running(image_name="web"), debug=running()))
    assert done(reported) == ([], set())
    assert done(replace(state, link=None)) == ([], set())


def test_ephemeral_container_that_cannot_be_is_refused_once():
    state = replace(
        LINKED, pod=pod(container("app"), ephemeralContainers=[container("debug", ports=[{"hostPort": 1}])])
    )
    [refusal], _ = done(state)
    assert refusal.name == "debug"
    assert done(replace(state, refused=frozenset({"debug"}))) == ([], set())


def test_status_is_written_where_it_differs():
    first = shown(LINKED)
    assert first["phase"] == "Running"
    assert shown(replace(LINKED, published=first)) is None
    assert shown(replace(LINKED, pod={**POD, "status": first})) is None
    assert shown(replace(FREE, problems=("no",)))["reason"] == "UnsupportedPod"
    assert shown(replace(FREE, held=Held(101.0, first))) == first


def test_look_is_taken_when_something_is_due():
    pauses = Pauses()
    assert decide(replace(FREE, held=Held(103.5))).look_in_s == 3.5
    assert decide(replace(link(has_plan=False), held=Held(102.0))).look_in_s == 2.0
    assert decide(deleted(replace(RUNNING, stop=Stop(100.0 + pauses.connect)))).look_in_s == pauses.connect
    assert decide(deleted(replace(LINKED, stop=Stop(150.0, ("supervisor", 30))))).look_in_s == 1.0
    assert decide(LINKED).look_in_s == 60.0
    assert text(0)


GANG = {**POD, "metadata": {**POD["metadata"], "labels": {"scheduling.x-k8s.io/pod-group": "pi"}}}
IN_GANG = replace(FREE, pod=GANG, prepared=PREPARED)
GIVING_BACK = replace(RUNNING, pod=GANG, is_withdrawn=True)
WITHOUT_PLAN = replace(LINKED, pod=GANG, prepared=PREPARED, link=replace(HERE, has_plan=False), report=None)


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (IN_GANG, ([], {actions.Turn()})),
        (replace(IN_GANG, has_turn=True), ([actions.Submit()], set())),
        (WITHOUT_PLAN, ([], {actions.Together()})),
        (replace(WITHOUT_PLAN, is_together=True), ([actions.SendPlan("supervisor", PLAN)], set())),
        (GIVING_BACK, ([actions.Cancel("12")], set())),
        (replace(GIVING_BACK, job=job(JobState.CANCELLED)), ([actions.GiveBack()], set())),
        (gone(replace(GIVING_BACK, job=job(JobState.CANCELLED))), ([actions.Finish()], set())),
    ],
)
def test_pods_that_start_together(state, wanted):
    assert done(state, *wanted) == wanted
