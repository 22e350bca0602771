"""The pod fields this kubelet knows (core/v1 of Kubernetes 1.36); any other is refused by name.

Listed are fields that are implemented, refused with a specific reason, or handled by a scheduler or the API server.
"""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.model.pod_inputs import Object

SPEC = frozenset(
    {
        *("activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy"),
        *("enableServiceLinks", "ephemeralContainers", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers"),
        *("hostname", "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os"),
        *("overhead", "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims"),
        *(
            "resources",
            "restartPolicy",
            "runtimeClassName",
            "schedulerName",
            "schedulingGates",
            "schedulingGroup",
            "securityContext",
        ),
        *("serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain"),
        *("terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes"),
    }
)
CONTAINER = frozenset(
    {
        *("args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name"),
        *("ports", "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules"),
        *("securityContext", "startupProbe", "stdin", "stdinOnce", "targetContainerName", "terminationMessagePath"),
        *("terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts", "workingDir"),
    }
)
VARIABLE = frozenset({"configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"})


def unknown(pod: Object) -> Iterator[str]:
    """Yield a problem for each unknown field of a pod."""
    spec = pod["spec"]
    for name in _others(spec, SPEC):
        yield f"spec.{name} is not known here; remove it"
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        for name in of_container(container):
            yield f"container {container['name']}: {name}"


def of_container(container: Object) -> Iterator[str]:
    """Yield a problem for each unknown field of a container."""
    for name in _others(container, CONTAINER):
        yield f"{name} is not known here; remove it"
    for entry in container.get("env") or ():
        for name in _others(entry.get("valueFrom") or {}, VARIABLE):
            yield f"variable {entry['name']} from {name} is not known here; use one of {', '.join(sorted(VARIABLE))}"


def _others(holder: Object, known: frozenset[str]) -> list[str]:
    return sorted(name for name, value in holder.items() if value not in (None, "", [], {}) and name not in known)
