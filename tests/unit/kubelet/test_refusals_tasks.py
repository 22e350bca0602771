"""What a pod of several tasks may not ask for; what it may is in test_refusals."""

import pytest

from isthmus.kubelet.admit.tasks import problems
from isthmus.kubelet.slurm import flags
from tests.support.pods.objects import container, pod

TWO = {flags.FLAGS: "--ntasks=2"}
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
    (told,) = problems(pod(container(securityContext=context), annotations=TWO))
    assert told.startswith(f"container app: {what} is not offered with several tasks: ")
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
    asked = pod(annotations={**TWO, flags.MPI_HOME: said})
    assert len([*problems(asked)]) == count
    assert flags.mpi_home(asked) == (said == "true")
