"""LimitRange and ResourceQuota: the API server applies them, and Slurm is asked for what they left."""

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{{name: main, image: busybox, command: [sleep, '1000']}}]
"""
ASKED = "squeue --noheader --user={user} --name={name} --Format=NumCPUs:20,MinMemory:20"


def asked(space, controller, name):
    return controller.output(ASKED.format(user=space.cluster.user, name=name)).split()


def test_job_asks_for_what_the_limit_range_gave_its_pod(space, controller):
    space.apply(POD.format(name="usual-pod"))
    space.ready("pod/usual-pod")
    cpus, memory = asked(space, controller, "usual-pod")
    assert cpus == "2"
    assert int(memory.removesuffix("M")) >= 48


def test_pod_beyond_the_quota_is_no_job(space, controller):
    refused = space.try_kubectl("apply -f -", POD.format(name="one-too-many"))
    assert refused.rc == 1
    assert "exceeded quota: most" in refused.stderr
    assert asked(space, controller, "one-too-many") == []
