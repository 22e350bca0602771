"""What a pod may not ask for."""

from dataclasses import replace

import pytest

from isthmus.kubelet.admit.containers import ephemeral
from isthmus.kubelet.admit.pod import ignored, problems
from isthmus.kubelet.slurm import flags
from tests.support.pods.objects import SETTINGS, container, pod


def security(**own):
    return pod(container(securityContext=own))


def mounting(**mount):
    return pod(container(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}]))


def of_node(propagation):
    one = container(volumeMounts=[{"name": "v", "mountPath": "/v", "mountPropagation": propagation}])
    return pod(one, volumes=[{"name": "v", "hostPath": {"path": "/srv"}}])


def nested(propagation):
    mounts = [{"name": "v", "mountPath": "/v", "mountPropagation": propagation}, {"name": "w", "mountPath": "/v/sub/"}]
    return pod(container(volumeMounts=[*mounts, {"name": "w", "mountPath": "/vast"}]))


def with_volume(**volume):
    return pod(volumes=[{"name": "v", **volume}])


def probing(**probe):
    return pod(container(livenessProbe=probe))


def variable(**source):
    return pod(container(env=[{"name": "X", "valueFrom": source}]))


FILTERED = {"seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize(
    "whole",
    [
        pod(),
        pod(hostPID=False, hostIPC=False, runtimeClassName="apptainer", os={"name": "linux"}, hostUsers=True),
        pod(hostNetwork=True),
        pod(tolerations=[{"operator": "Exists"}], schedulerName="x", priority=0, preemptionPolicy="Never"),
        pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}, "fsGroupChangePolicy": "Always"}),
        security(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
        security(capabilities={"add": ["SYS_PTRACE"]}),
        security(privileged=True),
        security(privileged=False, procMount="Default", seccompProfile={"type": "Unconfined"}),
        security(runAsUser=65535, readOnlyRootFilesystem=True),
        mounting(mountPropagation="None", recursiveReadOnly="IfPossible"),
        mounting(mountPropagation="HostToContainer"),
        mounting(mountPropagation="Bidirectional"),
        of_node("None"),
        nested("None"),
        with_volume(emptyDir={}),
        with_volume(hostPath={"path": "/x", "type": "Socket"}),
        with_volume(ephemeral={"volumeClaimTemplate": {}}),
        with_volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
        probing(tcpSocket={"port": 80}),
        pod(container(ports=[{"containerPort": 80, "hostPort": 80}]), hostNetwork=True),
        pod(initContainers=[container("s", restartPolicy="Always")]),
        pod(container(resources={"limits": {"nvidia.com/gpu": 1}})),
        pod(annotations={flags.FLAGS: "--ntasks=2"}),
        variable(fieldRef={"fieldPath": "metadata.labels['a']"}),
        pod(container(stdin=True, tty=True, resizePolicy=[{"resourceName": "cpu"}], imagePullPolicy="Never")),
    ],
)
def test_ordinary_pod_has_no_problem(whole):
    assert problems(whole, SETTINGS) == []


@pytest.mark.parametrize(
    ("whole", "problem"),
    [
        (pod(hostPID=True), "spec.hostPID is not offered: it belongs to the node"),
        (pod(hostIPC=True), "spec.hostIPC is not offered"),
        (pod(resourceClaims=[{"name": "x"}]), "spec.resourceClaims is not offered: devices come from Slurm"),
        (pod(os={"name": "windows"}), "spec.os is not offered: nodes run Linux"),
        (pod(somethingNew={"a": 1}), "spec.somethingNew is not known here"),
        (pod(securityContext={"sysctls": [{"name": "a"}]}), "spec.securityContext.sysctls is not offered"),
        (pod(securityContext={"windowsOptions": {"runAsUserName": "x"}}), "windowsOptions is not offered"),
        (pod(securityContext={"fsGroup": 70000}), "fsGroup 70000 is none of your subordinate ids"),
        (pod(securityContext={"supplementalGroups": [70000]}), "supplementalGroups 70000"),
        (pod(securityContext={"appArmorProfile": {"type": "Localhost"}}), "appArmorProfile Localhost"),
        (pod(dnsPolicy="None"), "dnsPolicy None has no nameservers"),
        (pod(setHostnameAsFQDN=True, subdomain="d" * 50), "is longer than 64; shorten it"),
        (pod(container(resources={"limits": {"x.org/y": 1}})), "resource x.org/y is not one of this cluster's"),
        (pod(container(resources={"limits": {"hugepages-2Mi": "2Mi"}})), "resource hugepages-2Mi is not offered"),
        (security(capabilities={"add": ["SYS_ADMIN", "CAP_NET_ADMIN"]}), "capabilities NET_ADMIN, SYS_ADMIN are"),
        (security(capabilities={"add": ["ALL"]}), "capabilities ALL are not offered"),
        (security(appArmorProfile={"type": "Localhost"}), "appArmorProfile Localhost is not offered"),
        (security(procMount="Unmasked"), "procMount Unmasked is not offered"),
        (security(runAsUser=65536), "runAsUser 65536 is none of your subordinate ids; use a number below 65536"),
        (security(windowsOptions={"hostProcess": True}), "windowsOptions is not offered"),
        (
            of_node("Bidirectional"),
            "mountPropagation Bidirectional of a hostPath is not offered: it needs the node; use",
        ),
        (of_node("HostToContainer"), "mount /v: mountPropagation HostToContainer of a hostPath is not offered"),
        (nested("Bidirectional"), "mount /v: /v/sub/ lies in it and would be hidden by its mountPropagation; mount it"),
        (mounting(recursiveReadOnly="Enabled"), "recursiveReadOnly is not offered"),
        (with_volume(nfs={"server": "s"}), "volume v: nfs is not offered; use one of configMap, downwardAPI"),
        (with_volume(csi={"driver": "d"}), "volume v: csi is not offered"),
        (with_volume(), "volume v: nothing is not offered"),
        (with_volume(emptyDir={"medium": "HugePages"}), "medium HugePages is not offered"),
        (with_volume(hostPath={"path": "/", "type": "Disk"}), "hostPath type Disk is unknown"),
        (with_volume(projected={"sources": [{"clusterTrustBundle": {}}]}), "projected clusterTrustBundle"),
        (with_volume(projected={"sources": [{"podCertificate": {}}]}), "projected podCertificate"),
        (
            with_volume(downwardAPI={"items": [{"path": "x", "fieldRef": {"fieldPath": "status.phase"}}]}),
            "field status.phase cannot be asked for",
        ),
        (variable(fieldRef={"fieldPath": "spec.secret"}), "field spec.secret cannot be asked for"),
        (variable(fileKeyRef={"path": "x"}), "variable X from fileKeyRef is not known here"),
        (probing(periodSeconds=1), "livenessProbe says nothing"),
        (probing(httpGet={"port": "web"}), "livenessProbe names a port that the container does not have"),
        (
            pod(container(lifecycle={"preStop": {"tcpSocket": {"port": "x"}}})),
            "preStop names a port that the container does not have",
        ),
        (pod(container(lifecycle={"stopSignal": "SIGINT"})), "lifecycle.stopSignal is not offered"),
        (pod(container(ports=[{"containerPort": 80, "hostPort": 80}])), "hostPort 80 is not offered"),
        (pod(container(image="")), "container app: it names no image"),
        (pod(container(volumeDevices=[{"name": "v"}])), "volumeDevices is not offered"),
        (pod(container(restartPolicy="Never")), "a restart policy of its own is for sidecars only"),
        (pod(initContainers=[container("i", restartPolicy="Never")]), "container i: a restart policy"),
        (pod(container(brandNew=1)), "container app: brandNew is not known here"),
        (pod(annotations={flags.FLAGS: "--wrap=id"}), "'--wrap=id' is not allowed"),
        (pod(annotations={flags.MPI_FLAGS: "--uid=0"}), "'--uid=0' is not allowed"),
        (pod(container(), container("b"), annotations={flags.FLAGS: "-n 2"}), "no container is called 'main'"),
        (
            pod(container(securityContext=FILTERED), annotations={flags.FLAGS: "-n 2"}),
            "container app: securityContext.seccompProfile is not offered with several tasks",
        ),
        (
            pod(securityContext=FILTERED, annotations={flags.MPI_FLAGS: ""}),
            "set its type to Unconfined for this container",
        ),
        (pod(nodeSelector={"a": "b"}), "no node meets 'a In b'"),
    ],
)
def test_problem_is_reported_with_its_remedy(whole, problem):
    [found] = problems(whole, SETTINGS)
    assert problem in found
    assert ";" in found or ": " in found


def test_all_problems_are_reported_at_once():
    assert len(problems(pod(container(securityContext={"procMount": "X"}), hostPID=True, hostIPC=True), SETTINGS)) == 3


def test_ids_are_the_users():
    whole = pod(securityContext={"runAsUser": 1000})
    assert len(problems(whole, replace(SETTINGS, ids=1))) == 1


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 0),
        ({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}, 1),
        ({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, 0),
        ({"topologySpreadConstraints": [{}]}, 1),
        ({"initContainers": [container("init", securityContext={"privileged": True})]}, 1),
        ({"securityContext": {"seLinuxOptions": {"level": "s0"}}}, 1),
        ({"initContainers": [container("init", securityContext={"seLinuxOptions": {"level": "s0"}})]}, 1),
        ({"containers": [container(resources={"limits": {"cpu": "2"}})]}, 0),
        ({"containers": [container(resources={"limits": {"cpu": "500m"}})]}, 1),
        ({"containers": [container(), container("two", resources={"limits": {"cpu": "1"}})]}, 1),
    ],
)
def test_what_only_a_scheduler_does_is_reported(spec, count):
    assert len(ignored(pod(**spec))) == count
    assert problems(pod(**spec), SETTINGS) == []


def test_ephemeral_container_is_judged_alone():
    whole = pod(hostPID=True, ephemeralContainers=[container("d", securityContext={"procMount": "Unmasked"})])
    assert ephemeral(whole, "d", SETTINGS) == [
        "container d: procMount Unmasked is not offered: /proc belongs to the node; remove it"
    ]


@pytest.mark.parametrize(
    "container_",
    [
        container(),
        container(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        container(securityContext={"runAsNonRoot": True, "readOnlyRootFilesystem": True}),
        container(securityContext={"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False}),
    ],
)
def test_tasks_without_a_filter_are_well(container_):
    several = pod(
        container_, initContainers=[container("i", securityContext=FILTERED)], annotations={flags.FLAGS: "-n 2"}
    )
    assert problems(several, SETTINGS) == []
