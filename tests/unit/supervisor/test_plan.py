import copy
from pathlib import Path

import pytest

from isthmus.supervisor import plan as plans
from isthmus.supervisor.plan import PlanError
from isthmus.supervisor.runtime import linux, sandbox
from isthmus.supervisor.volumes import mounts as volumes
from isthmus.supervisor.volumes import podfiles
from tests.support.pods.plans import action, container, mount, plan, probe, volume

WHOLE = plan(
    container(
        "main",
        "exit 0",
        env=[{"name": "A", "value": "1"}],
        mounts=[mount("data", "/data")],
        liveness=probe("exec", argv=["true"]),
        pre_stop=action("sleep", seconds=1),
        user={"uid": 1, "gid": 2, "groups": [3]},
    ),
    volumes=[volume("data", "files", files=[{"path": "a", "mode": 420, "data": ""}])],
)


def changed(path, value):
    made = copy.deepcopy(WHOLE)
    *way, last = path
    place = made
    for key in way:
        place = place[key]
    place[last] = value
    return made


def test_whole_plan_is_read():
    assert plans.read(WHOLE) == WHOLE


REFUSED = [
    (("schema",), 2, "a plan of schema 2; this supervisor knows 1"),
    (("schema",), True, "plan.schema is bool, not int"),
    (("restart_policy",), "Sometimes", "plan.restart_policy is 'Sometimes', not one of Always, Never, OnFailure"),
    (("grace_s",), "5", "plan.grace_s is str, not int"),
    (("containers",), {}, "plan.containers is dict, not a list"),
    (("containers", 0, "argv"), ["a", 1], "plan.containers[0].argv[1] is int, not str"),
    (("containers", 0, "env", 0), {"name": 1}, "plan.containers[0].env[0] is dict, not an object of strings"),
    (("containers", 0, "user"), {"uid": 1}, "plan.containers[0].user: unknown or missing: gid, groups"),
    (("containers", 0, "liveness", "kind"), "sing", "plan.containers[0].liveness.kind is 'sing', not one of"),
    (("containers", 0, "pre_stop", "kind"), "grpc", "plan.containers[0].pre_stop.kind is 'grpc', not one of"),
    (("containers", 0, "mounts", 0, "volume"), "none", "container main mounts ['none'], which are no volumes"),
    (("volumes", 0, "files", 0, "mode"), None, "plan.volumes[0].files[0].mode is NoneType, not int"),
]


@pytest.mark.parametrize(("path", "value", "told"), REFUSED)
def test_plan_that_is_wrong_is_refused_with_the_place(path, value, told):
    with pytest.raises(PlanError) as caught:
        plans.read(changed(path, value))
    assert told in str(caught.value)


def test_secrets_do_not_stand_in_a_refusal():
    with pytest.raises(PlanError) as caught:
        plans.read(changed(("containers", 0, "env"), "hidden"))
    assert "hidden" not in str(caught.value)


def test_containers_of_a_pod_with_init_containers_wait_for_these():
    assert plans.creating({**WHOLE, "init": []}) == "ContainerCreating"
    assert plans.creating({**WHOLE, "init": WHOLE["containers"]}) == "PodInitializing"


def test_hosts_and_resolver():
    made = {**WHOLE, "fqdn": "web-0.web.default.svc", "hosts": [{"address": "10.0.0.9", "names": ["a", "b"]}]}
    assert podfiles.hosts(made, ["10.0.0.1"]).splitlines()[3:] == [
        "10.0.0.1\tweb-0.web.default.svc\tweb-0",
        "10.0.0.9\ta\tb",
    ]
    assert podfiles.resolv(made) == "nameserver 10.96.0.10\nsearch default.svc.cluster.local\noptions ndots:5\n"


@pytest.mark.parametrize(
    ("add", "drop", "told"),
    [
        ([], [], sandbox.USUAL),
        (["SYS_TIME"], ["CHOWN"], (sandbox.USUAL | {"SYS_TIME"}) - {"CHOWN"}),
        (["CAP_CHOWN"], ["ALL"], {"CHOWN"}),
        (["ALL"], [], set(linux.CAPABILITIES)),
        (["ALL"], ["CHOWN"], set(linux.CAPABILITIES) - {"CHOWN"}),
    ],
)
def test_capabilities(add, drop, told):
    made = container("main", "", capabilities={"add": add, "drop": drop})
    assert sandbox.identity(made).capabilities == told


def test_command_line_quotes_any_path():
    folders = volumes.Folders(Path("/base"))
    mounts = [sandbox.bind('/a,"b', "/c:d", read_only=True)]
    words = sandbox.command({**WHOLE["containers"][0], "image": "/i.squashfs"}, folders, "/base/roots/main", mounts)
    assert 'type=bind,"source=/a,""b",destination=/c:d,ro' in words
    assert words[-2:] == ["/i.squashfs", "/.isthmus/pause"]
    assert words[words.index("--overlay") + 1] == "/base/roots/main"
    # Whether the pod's containers share processes or not: none may see Apptainer's.
    assert "--pid" in words


def test_plan_of_a_kubelet_of_before_is_read():
    told = copy.deepcopy(WHOLE)
    for one in (*told["init"], *told["containers"]):
        del one["seccomp"]
    assert plans.read(told)["containers"][0]["seccomp"] is None
