"""The plan of a pod: what is written is read, and what is wrong is refused whole."""

import copy
import json

import pytest

from isthmus.podproto import plan as plans
from isthmus.podproto.plan import PlanError, to_json
from tests.support.pods.plans import action, container, mount, plan, probe, volume

WHOLE = plan(
    container(
        "main",
        "exit 0",
        env=[{"name": "A", "value": "1"}, {"name": "IP", "fact": "pod_ip"}],
        mounts=[mount("data", "/data")],
        liveness=probe("exec", argv=["true"]),
        readiness=probe("http", port=80, headers=[["A", "b"]]),
        pre_stop=action("sleep", seconds=1),
        user={"uid": 1, "gid": 2, "groups": [3]},
    ),
    volumes=[volume("data", "files", files=[{"path": "a", "mode": 420, "data": "c2VjcmV0"}])],
)


def changed(path, value):
    made = copy.deepcopy(WHOLE)
    *way, last = path
    place = made
    for key in way:
        place = place[key]
    place[last] = value
    return made


def test_what_is_read_is_written_again():
    reported = plans.read(WHOLE)
    assert reported.volumes[0].files[0].data == b"secret"
    assert plans.read(json.loads(json.dumps(to_json(reported)))) == reported


REFUSED = [
    (("schema",), 2, "a plan of schema 2; this supervisor knows 1"),
    (("schema",), True, "plan.schema is bool, not int"),
    (("restart_policy",), "Sometimes", "plan.restart_policy is 'Sometimes', not one of Always, Never, OnFailure"),
    (("restart_policy",), ["Always"], "plan.restart_policy is list, not str"),
    (("grace_s",), "5", "plan.grace_s is str, not int"),
    (("containers",), {}, "plan.containers is dict, not a list"),
    (("containers", 0), [], "plan.containers[0] is list, not an object"),
    (("containers", 0, "argv"), ["a", 1], "plan.containers[0].argv[1] is int, not str"),
    (("containers", 0, "env", 0), {"name": 1, "value": ""}, "plan.containers[0].env[0].name is int, not str"),
    (("containers", 0, "env", 0), {"name": "A"}, "plan.containers[0].env[0]: unknown or missing: value"),
    (("containers", 0, "env", 1, "fact"), "age", "plan.containers[0].env[1].fact is 'age', not one of"),
    (("containers", 0, "user"), {"uid": 1}, "plan.containers[0].user: unknown or missing: gid, groups"),
    (("containers", 0, "liveness", "kind"), "sing", "plan.containers[0].liveness.kind is 'sing', not one of"),
    (("containers", 0, "liveness", "kind"), "sleep", "plan.containers[0].liveness.kind is 'sleep', not one of"),
    (("containers", 0, "liveness", "often"), 1, "plan.containers[0].liveness: unknown or missing: often"),
    (("containers", 0, "pre_stop", "kind"), "grpc", "plan.containers[0].pre_stop.kind is 'grpc', not one of"),
    (("containers", 0, "readiness", "headers"), [["A"]], "plan.containers[0].readiness.headers[0] has 1 parts, not 2"),
    (("containers", 0, "mounts", 0, "volume"), "none", "container main mounts ['none'], which are no volumes"),
    (("volumes", 0, "files", 0, "mode"), None, "plan.volumes[0].files[0].mode is NoneType, not int"),
    (("volumes", 0, "files", 0, "data"), "?", "plan.volumes[0].files[0].data is no base64"),
    (("volumes", 0, "colour"), "red", "plan.volumes[0]: unknown or missing: colour"),
]


@pytest.mark.parametrize(("path", "value", "reported"), REFUSED)
def test_plan_that_is_wrong_is_refused_with_the_place(path, value, reported):
    with pytest.raises(PlanError) as caught:
        plans.read(changed(path, value))
    assert reported in str(caught.value)


@pytest.mark.parametrize("value", [None, [], "plan", {}])
def test_what_is_no_plan_is_refused(value):
    with pytest.raises(PlanError):
        plans.read(value)


def test_secrets_do_not_stand_in_a_refusal():
    for path in (("containers", 0, "env"), ("volumes", 0, "files", 0, "data")):
        with pytest.raises(PlanError) as caught:
            plans.read(changed(path, "hidden"))
        assert "hidden" not in str(caught.value)


def test_containers_of_a_pod_with_init_containers_wait_for_these():
    reported = plans.read(WHOLE)
    assert plans.creating(reported) == "ContainerCreating"
    assert plans.creating(reported._replace(init=reported.containers)) == "PodInitializing"


def test_container_that_joins_mounts_volumes_of_the_pod_only():
    reported = plans.read(WHOLE)
    joining = container("late", "", mounts=[mount("data", "/d")])
    assert plans.container(joining, reported.volumes).mounts[0].volume == "data"
    with pytest.raises(PlanError, match="container late mounts"):
        plans.container(joining, [])
