"""Fields of a pod that this kubelet has an answer for (core/v1 of Kubernetes 1.36); others are refused by name.

In it are fields that are acted on, that have a refusal of their own, or that concern a scheduler or the API server.
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
    """Give the fields of a pod that nobody here knows, as problems."""
    spec = pod["spec"]
    for name in _others(spec, SPEC):
        yield f"spec.{name} is not known here; remove it"
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        for name in of_container(container):
            yield f"container {container['name']}: {name}"


def of_container(container: Object) -> Iterator[str]:
    """Give the fields of a container that nobody here knows, as problems."""
    for name in _others(container, CONTAINER):
        yield f"{name} is not known here; remove it"
    for entry in container.get("env") or ():
        for name in _others(entry.get("valueFrom") or {}, VARIABLE):
            yield f"variable {entry['name']} from {name} is not known here; use one of {', '.join(sorted(VARIABLE))}"


def _others(holder: Object, known: frozenset[str]) -> list[str]:
    return sorted(name for name, value in holder.items() if value not in (None, "", [], {}) and name not in known)
