"""What Kubernetes' own controllers make of pods, and where their data lie."""

import pytest

from tests.support.wait import wait

JOB_S = 200


@pytest.fixture(scope="module")
def database(space):
    """A StatefulSet of two, ready one after the other."""
    space.kubectl(f"rollout status statefulset/db --timeout={JOB_S}s")
    return "db"


def completed(space, job):
    space.kubectl(f"wait --for=condition=Complete job/{job} --timeout={JOB_S}s")
    return space.get(f"pods --selector batch.kubernetes.io/job-name={job}")["items"]


def test_stateful_set_has_stable_names(space, database, settings):
    assert space.kubectl("exec db-1 -- cat /data/names") == "db-1"
    # By the name of the other, from one to the other, as soon as DNS has heard that they are ready.
    full = f"db-1.db.{space.name}.svc.{settings['domain']}"
    for asks, name, reported in (("db-1", "db-0.db", "db-0"), ("db-0", full, "db-1")):
        command = f"exec {asks} -- wget -q -O - http://{name}:8080/names"
        wait(lambda command=command: space.try_kubectl(command).stdout.strip(), reported.__eq__)


def test_stateful_set_has_a_claim_per_pod(space, database):
    claims = {claim["metadata"]["name"]: claim for claim in space.get("pvc --selector app=db")["items"]}
    assert {name: claim["status"]["phase"] for name, claim in claims.items()} == {
        "data-db-0": "Bound",
        "data-db-1": "Bound",
    }
    assert {claim["spec"]["storageClassName"] for claim in claims.values()} == {"home"}


def test_stateful_set_comes_back_with_its_data(space, database):
    before = space.get("pod/db-1")["metadata"]["uid"]
    space.kubectl("delete pod db-1")
    wait(
        lambda: space.try_kubectl("get pod db-1 -o jsonpath={.metadata.uid}").stdout,
        lambda uid: uid not in ("", before),
    )
    space.ready("pod/db-1")
    assert space.kubectl("exec db-1 -- cat /data/names").split() == ["db-1", "db-1"]


def test_claim_is_the_groups_of_who_is_not_root(space, database):
    assert space.kubectl("exec db-1 -- stat -c '%u:%g' /data /data/names").split() == ["0:3000", "1000:3000"]
    assert space.kubectl("exec db-1 -- stat -c %a /data") == "2770"


def test_claim_goes_with_what_only_a_container_could_open(space, login, user):
    space.apply(HOARDER)
    assert space.ended("hoarder")["phase"] == "Succeeded"
    volume = space.get("pvc/hoard")["spec"]["volumeName"]
    folder = space.get(f"pv/{volume}")["spec"]["hostPath"]["path"]
    assert login.run_as(user, f"stat -c %a {folder}") == "2770"
    space.kubectl("delete pod/hoarder pvc/hoard --timeout=60s")
    wait(lambda: login.run_as(user, f"test -e {folder} || echo gone"), "gone".__eq__)


def test_daemon_set_has_one_pod(space):
    space.kubectl(f"rollout status daemonset/agent --timeout={JOB_S}s")
    pods = space.get("pods --selector app=agent")["items"]
    assert [pod["spec"]["nodeName"] for pod in pods] == ["slurm"]


def test_job_completes(space):
    pods = completed(space, "plain")
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 3


def test_indexed_job_counts(space):
    pods = completed(space, "indexed")
    reported = [space.kubectl(f"logs {pod['metadata']['name']}") for pod in pods]
    assert sorted(reported) == [f"{index} of indexed-{index}" for index in range(3)]


def test_failed_pod_of_a_job_has_a_successor(space):
    phases = [pod["status"]["phase"] for pod in completed(space, "again")]
    assert sorted(phases) == ["Failed", "Succeeded"]


def test_cron_job_runs_when_asked(space):
    space.kubectl("create job tonight --from=cronjob/nightly")
    (pod,) = completed(space, "tonight")
    assert space.kubectl(f"logs {pod['metadata']['name']}") == "it is night"


def test_local_claim_stays_on_its_node(space):
    """The second pod of a claim goes where the first one's data are."""
    assert space.ended("writer")["phase"] == "Succeeded"
    space.apply(READER)
    read = space.ended("reader")
    assert space.kubectl("logs reader") == "written"
    assert read["hostIP"] == space.status("writer")["hostIP"]


HOARDER = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: hoard}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: hoarder}
spec:
  restartPolicy: Never
  securityContext: {runAsUser: 1000, fsGroup: 3000}
  containers:
    - name: hoarder
      image: busybox
      command: [sh, -c, 'umask 077; mkdir -p /data/own/deep; echo mine >/data/own/deep/file; chmod 700 /data/own']
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: hoard}}]
"""
READER = """
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  restartPolicy: Never
  containers:
    - name: reader
      image: busybox
      command: [cat, /scratch/text]
      volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes: [{name: scratch, persistentVolumeClaim: {claimName: scratch}}]
"""
