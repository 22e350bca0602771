"""A container as its supervisor runs it."""

from dataclasses import replace

import pytest

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.slurm import flags
from isthmus.kubelet.translate import pod as translate
from isthmus.model import image_accounts
from isthmus.podproto.plan import Capabilities, Mount, Propagation, User
from isthmus.podproto.reasons import Reason
from tests.support.pods.objects import IMAGE, container, pod, resolved

ACCOUNTS = image_accounts.read(
    "root:x:0:0:root:/root:/bin/sh\napp:x:7:8::/srv/app:/bin/sh\n", "staff:x:20:app\nmore:x:21:app\n"
)


def plan(one=None, image=IMAGE, annotations=None, **spec):
    whole = pod(one or container(), annotations=annotations, **spec)
    return translate.plan(whole, resolved(images={"app": image}))


def first(one=None, image=IMAGE, **spec):
    return plan(one, image, **spec).containers[0]


@pytest.mark.parametrize(
    ("fields", "argv"),
    [
        ({}, ("/entry", "serve")),
        ({"args": ["a"]}, ("/entry", "a")),
        ({"command": ["c"]}, ("c",)),
        ({"command": ["c"], "args": ["a", "b"]}, ("c", "a", "b")),
        ({"command": [], "args": []}, ("/entry", "serve")),
        ({"command": ["sh", "-c", "echo \"$HOME\" 'x' `y`\n"]}, ("sh", "-c", "echo \"$HOME\" 'x' `y`\n")),
        ({"args": ["$(A)", "$(B)", "$$(A)"], "env": [{"name": "A", "value": "1"}]}, ("/entry", "1", "$$(B)", "$$(A)")),
    ],
)
def test_command_is_merged_with_the_image(fields, argv):
    assert first(container(**fields)).argv == argv


def test_image_expands_nothing():
    assert first(image=replace(IMAGE, entrypoint=("$(A)",), cmd=("$$",))).argv == ("$$(A)", "$$$$")


def test_image_without_command_waits_for_one():
    with pytest.raises(UnreadyError, match="no command specified: the image has none; set command"):
        first(image=replace(IMAGE, entrypoint=(), cmd=()))


@pytest.mark.parametrize(("own", "image", "cwd"), [("/a", "/b", "/a"), (None, "/b", "/b"), (None, "", None)])
def test_working_folder_is_the_containers_or_the_images(own, image, cwd):
    assert first(container(workingDir=own), replace(IMAGE, workdir=image)).cwd == cwd


@pytest.mark.parametrize(
    ("whole", "own", "image", "user"),
    [
        ({}, {}, "", None),
        ({}, {}, "1000", User(1000, 0)),
        ({}, {}, "1000:100", User(1000, 100)),
        ({}, {}, "app", User(7, 8, (20, 21))),
        ({}, {}, "app:9", User(7, 9, (20, 21))),
        ({"runAsUser": 5}, {}, "app", User(5, 0)),
        # As the image has it: its group, and the groups that list it.
        ({"runAsUser": 7}, {}, "", User(7, 8, (20, 21))),
        ({"runAsUser": 7, "runAsGroup": 9}, {}, "", User(7, 9, (20, 21))),
        ({}, {}, "7", User(7, 8, (20, 21))),
        ({}, {}, "app:staff", User(7, 20, (20, 21))),
        ({"supplementalGroups": [4]}, {}, "app", User(7, 8, (4, 20, 21))),
        ({"supplementalGroups": [4], "supplementalGroupsPolicy": "Strict"}, {}, "app", User(7, 8, (4,))),
        ({"runAsUser": 5, "runAsGroup": 6}, {"runAsUser": 0}, "", User(0, 6)),
        ({}, {"runAsGroup": 6}, "", User(0, 6)),
        ({"fsGroup": 3, "supplementalGroups": [4, 3]}, {}, "", User(0, 0, (4, 3))),
        ({"runAsNonRoot": True}, {"runAsUser": 1}, "", User(1, 0)),
        ({"runAsNonRoot": True}, {}, "app", User(7, 8, (20, 21))),
        ({"runAsNonRoot": True}, {"runAsNonRoot": False}, "", None),
    ],
)
def test_user_is_the_containers_the_pods_or_the_images(whole, own, image, user):
    known = replace(IMAGE, user=image, accounts=ACCOUNTS)
    assert first(container(securityContext=own), known, securityContext=whole).user == user


@pytest.mark.parametrize(
    ("own", "image", "message"),
    [
        ({"runAsNonRoot": True}, "", "its image is root; set runAsUser"),
        ({"runAsNonRoot": True}, "0", "its image is root; set runAsUser"),
        ({"runAsNonRoot": True, "runAsUser": 0}, "1", "the pod's runAsUser is root"),
        ({}, "nobody", "user 'nobody' is not in its /etc/passwd; set runAsUser to a number"),
        ({}, "1:none", "group 'none' is not in its /etc/group; set runAsGroup to a number"),
    ],
)
def test_root_that_may_not_be_waits(own, image, message):
    with pytest.raises(UnreadyError, match=message) as caught:
        first(container(securityContext=own), replace(IMAGE, user=image))
    assert caught.value.reason == Reason.CONFIG


@pytest.mark.parametrize(
    ("whole", "image", "env", "home"),
    [
        ({}, "app", (), ["/srv/app"]),
        ({"runAsUser": 7}, "", (), ["/srv/app"]),
        ({}, "", (), ["/root"]),
        ({"runAsUser": 5}, "app", (), []),
        ({}, "app", ("HOME=/own",), ["/srv/app", "/own"]),
    ],
)
def test_home_is_the_accounts_unless_the_image_says_otherwise(whole, image, env, home):
    known = replace(IMAGE, user=image, env=env, accounts=ACCOUNTS)
    variables = first(container(), known, securityContext=whole).env
    assert [one.value for one in variables if one.name == "HOME"] == home


def test_privileged_container_has_all_capabilities():
    asked = {"privileged": True, "capabilities": {"add": ["CHOWN"], "drop": ["KILL"]}}
    assert first(container(securityContext=asked)).capabilities == Capabilities(("ALL",))


RUNTIME = {"seccompProfile": {"type": "RuntimeDefault"}}
OWN = {"seccompProfile": {"type": "Localhost", "localhostProfile": "audit/all.json"}}
NONE = {"seccompProfile": {"type": "Unconfined"}}


@pytest.mark.parametrize(
    ("of_pod", "of_container", "expected"),
    [
        ({}, {}, None),
        (RUNTIME, {}, "/usr/share/containers/seccomp.json"),
        ({}, RUNTIME, "/usr/share/containers/seccomp.json"),
        (RUNTIME, NONE, None),
        (RUNTIME, OWN, "/home/alice/.isthmus/seccomp/audit/all.json"),
        (RUNTIME, {"privileged": True}, None),
    ],
)
def test_seccomp_profile_is_the_containers_before_the_pods(of_pod, of_container, expected):
    assert first(container(securityContext=of_container), securityContext=of_pod).seccomp == expected


def test_capabilities_are_written_as_the_kernel_does():
    asked = {"add": ["CAP_NET_RAW", "chown"], "drop": ["ALL"]}
    found = first(container(securityContext={"capabilities": asked}))
    assert found.capabilities == Capabilities(("CHOWN", "NET_RAW"), ("ALL",))


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ({"mountPath": "/d"}, Mount("v", "/d")),
        ({"mountPath": "/d", "readOnly": True}, Mount("v", "/d", None, True)),
        ({"mountPath": "/d", "subPath": "a/b"}, Mount("v", "/d", "a/b")),
        ({"mountPath": "/d", "mountPropagation": "None"}, Mount("v", "/d")),
        ({"mountPath": "/d", "mountPropagation": "Bidirectional"}, Mount("v", "/d", propagation=Propagation.BOTH)),
        ({"mountPath": "/d", "subPathExpr": "x/$(A)"}, Mount("v", "/d", "x/1$")),
    ],
)
def test_mount_is_a_volume_or_a_part_of_it(mount, expected):
    one = container(env=[{"name": "A", "value": "1$"}], volumeMounts=[{"name": "v", **mount}])
    assert first(one, volumes=[{"name": "v", "emptyDir": {}}]).mounts == (expected,)


@pytest.mark.parametrize("path", ["$(B)", "$(IP)", "../x", "/x", "a/$(UP)"])
def test_part_of_a_volume_that_is_none_waits(path):
    facts = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    one = container(
        env=[facts, {"name": "UP", "value": ".."}],
        volumeMounts=[{"name": "v", "mountPath": "/d", "subPathExpr": path}],
    )
    with pytest.raises(UnreadyError, match="names no folder of the volume; use"):
        first(one)


def test_mounts_come_after_those_they_lie_in():
    paths = ["/a/b/c", "/a", "/z", "/a/b"]
    mounts = [{"name": "v", "mountPath": path} for path in paths]
    found = first(container(volumeMounts=mounts), volumes=[{"name": "v", "emptyDir": {}}]).mounts
    assert [mount.path for mount in found] == ["/a", "/z", "/a/b", "/a/b/c"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((None, None), [None, None]), (("64Mi", None), [64, None]), (("64Mi", "1Gi"), [64, 1024]), (("1Gi",), [None])],
)
def test_limit_below_the_jobs_is_the_containers_own(limits, expected):
    parts = [container(f"c{i}", resources={"limits": {"memory": x} if x else {}}) for i, x in enumerate(limits)]
    found = translate.plan(pod(*parts), resolved())
    assert [one.memory_mib for one in found.containers] == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, (False, ())),
        ({flags.FLAGS: "--time=10"}, (False, ())),
        ({flags.FLAGS: "--ntasks=1"}, (False, ())),
        ({flags.FLAGS: "--ntasks=4"}, (True, ())),
        ({flags.FLAGS: "-N2"}, (True, ())),
        ({flags.MPI_FLAGS: "--mpi=pmix -n 2"}, (True, ("--mpi=pmix", "--ntasks=2"))),
    ],
)
def test_command_of_several_tasks_runs_by_srun(annotations, expected):
    found = plan(annotations=annotations, initContainers=[container("i")])
    assert (found.containers[0].mpi, found.containers[0].mpi_flags) == expected
    assert not found.init[0].mpi


def test_one_of_several_containers_runs_by_srun():
    parts = container("main", command=["argoexec", "emissary", "--", "ep"]), container("wait")
    images = {"app": replace(IMAGE, accounts=ACCOUNTS)}
    found = translate.plan(pod(*parts, annotations={flags.MPI_FLAGS: "-n 2"}), resolved(images=images))
    assert [(one.mpi, one.mpi_wrapper) for one in found.containers] == [(True, 3), (False, 0)]
    assert ["HOME" in [each.name for each in one.env] for one in found.containers] == [False, True]


def test_image_that_is_not_ready_is_waited_for():
    with pytest.raises(UnreadyError, match="image 'app' is not ready"):
        translate.plan(pod(), resolved(images={}))
