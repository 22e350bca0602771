"""What a pod of several tasks may not ask for; what it may is in test_refusals."""

import pytest

from isthmus.kubelet.admit.tasks import ignored, problems
from isthmus.kubelet.slurm import annotations as notes
from tests.support.pods.objects import container, pod

TWO = {notes.FLAGS: "--ntasks=2"}
HOST = {"name": "v", "hostPath": {"path": "/data"}}
PART = [{"name": "v", "mountPath": "/v", "subPath": "a"}]


@pytest.mark.parametrize(
    ("context", "what"),
    [
        ({"runAsUser": 1000}, "securityContext.runAsUser"),
        ({"runAsUser": 0}, "securityContext.runAsUser"),
        ({"runAsGroup": 1000}, "securityContext.runAsGroup"),
        ({"capabilities": {"add": ["NET_RAW", "CAP_CHOWN"]}}, "capabilities.add CHOWN, NET_RAW"),
        ({"privileged": True}, "securityContext.privileged"),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, "securityContext.seccompProfile"),
    ],
)
def test_identity_that_a_task_cannot_have(context, what):
    (reported,) = problems(pod(container(securityContext=context), annotations=TWO))
    assert reported.startswith(f"container app: {what} is not offered with several tasks: ")
    assert not [*problems(pod(container(securityContext=context)))]


@pytest.mark.parametrize("context", [{"runAsUser": 1000}, {"fsGroup": 5}, {"supplementalGroups": [5]}])
def test_identity_of_the_whole_pod(context):
    assert len([*problems(pod(annotations=TWO, securityContext=context))]) == 1


@pytest.mark.parametrize(
    ("volume", "count"),
    [
        (HOST, 1),
        ({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, 1),
        ({"name": "v", "image": {"reference": "app"}}, 0),
        ({"name": "v", "emptyDir": {}}, 0),
    ],
)
def test_part_of_a_volume_that_others_may_change(volume, count):
    found = [*problems(pod(container(volumeMounts=PART), annotations=TWO, volumes=[volume]))]
    assert len(found) == count


@pytest.mark.parametrize(("said", "count"), [("true", 0), ("false", 0), ("yes", 1), ("", 1)])
def test_home_is_asked_for_by_annotation(said, count):
    asked = pod(annotations={**TWO, notes.MPI_HOME: said})
    assert len([*problems(asked)]) == count
    assert notes.is_true(asked, notes.MPI_HOME) == (said == "true")


SIDE = container("side", volumeMounts=PART, securityContext={"runAsUser": 7})


@pytest.mark.parametrize(
    ("names", "said", "problem"),
    [
        (("app",), {}, ""),
        (("app", "main"), {}, ""),
        (("app", "b"), {notes.MPI_CONTAINER: "b"}, ""),
        (("app", "b"), {"slurm.hpk.io/mpi-container": "b"}, ""),
        (("app", "b"), {}, "no container is called 'main'"),
        (("app", "b"), {notes.MPI_CONTAINER: "c"}, f"name one in {notes.MPI_CONTAINER}: app, b"),
        (("app",), {"slurm.hpk.io/flags": "--ntasks=3"}, "are one, and differ"),
        (("app",), {notes.MPI_WRAPPER: "yes"}, "write 'true' or 'false'"),
    ],
)
def test_container_that_has_the_tasks(names, said, problem):
    found = [*problems(pod(*map(container, names), annotations={**TWO, **said}))]
    assert [problem in one for one in found] == [True] * bool(problem)


def test_container_beside_the_tasks_has_what_any_has():
    assert not [*problems(pod(container("main"), SIDE, annotations=TWO, volumes=[HOST]))]


@pytest.mark.parametrize(
    ("volume", "asked", "count"),
    [
        ({"emptyDir": {}}, "--nodes=2", 1),
        ({"configMap": {"name": "x"}}, "--ntasks=2", 1),
        ({"emptyDir": {}}, "--nodes=1 --ntasks=2", 0),
        ({"emptyDir": {}}, "--time=5", 0),
        ({"hostPath": {"path": "/data"}}, "--nodes=2", 0),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "--nodes=2", 0),
        ({"image": {"reference": "app"}}, "--nodes=2", 0),
    ],
)
def test_volume_that_other_nodes_lack_is_named(volume, asked, count):
    mounting = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    found = [*ignored(pod(mounting, annotations={notes.FLAGS: asked}, volumes=[{"name": "v", **volume}]))]
    assert [one.startswith("volume v of container app is on the job's first node alone") for one in found] == [
        True
    ] * count


def test_token_that_every_pod_has_is_not_worth_a_word():
    mounting = container(volumeMounts=[{"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    assert not [*ignored(pod(mounting, annotations=TWO, volumes=[{"name": "v", "projected": {}}]))]
