"""The MPI Operator's objects: the manifest of its Go module, adapted to users' clusters, and the same as a Helm chart.

Changes: the image is the site's; pods of an MPIJob start together, so the kind PodGroup, which the kubelet reads, is
included; the controller requests little, as it is a job of the user; the custom resource does not repeat descriptions
of the pod template, so that a plain `kubectl apply` works (an annotation holds 256 KiB); admission policies are
included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

Object = dict[str, Any]

NAMESPACE = "mpi-operator"
NAME = "mpi-operator"
# Its default is five requests a second: a job of 64 workers would take a quarter of a minute to start.
REQUESTS = ("--kube-api-qps=50", "--kube-api-burst=100")
# Pods of this scheduler are created bound; its name makes the operator write PodGroups of scheduler-plugins.
GANGS = "--gang-scheduling=default-scheduler"
PORT = 8080
VALUES = "values.yaml"
_RESOURCES = "@resources@"
_FIRST = ("Namespace", "CustomResourceDefinition")
# Recipe's name -> the operator's name of the implementation.
_MPIS = {"openmpi": "OpenMPI", "mpich": "MPICH", "intel": "Intel"}
_HOME = "/home/mpiuser"
_EXAMPLE = "Two workers of one rank each, as user 1000, who is nobody's root; the launcher waits until both are ready."


@dataclass(frozen=True, slots=True)
class Files:
    """Sources of the objects: the operator's module, that of scheduler-plugins, and the admission policies."""

    operator: Path
    groups: Path
    policies: Path


@dataclass(frozen=True, slots=True)
class Shape:
    """Settings of a site, or of a chart's values.

    Attributes:
        image: of the controller.
        domain: of Services.
        namespace: of the controller.
        resources: its requests and limits.
        version: of the operator.
    """

    image: str
    domain: str
    namespace: str
    resources: Mapping[str, Any] | str
    version: str


def resources(memory_mib: int) -> dict[str, Any]:
    """Return requests and limits of the controller; a pod has whole CPUs, so it requests the least."""
    return {"requests": {"cpu": "10m", "memory": f"{memory_mib}Mi"}, "limits": {"memory": f"{memory_mib}Mi"}}


def objects(files: Files, shape: Shape) -> list[Object]:
    """Return the objects in the order in which they can be created.

    Args:
        files: what they are read from.
        shape: the settings.
    """
    texts = [path.read_text(encoding="utf-8") for path in (files.operator, files.groups)]
    found = [each for text in texts for each in _documents(text) if each]
    found.sort(key=lambda each: _FIRST.index(each["kind"]) if each["kind"] in _FIRST else len(_FIRST))
    added = _documents(Template(files.policies.read_text(encoding="utf-8")).substitute(domain=shape.domain))
    return [_fitting(each, shape) for each in found] + list(added)


def manifest(files: Files, shape: Shape) -> str:
    """Return the objects as one file for kubectl."""
    return "---\n".join(_text(each) for each in objects(files, shape))


def chart(files: Files, shape: Shape) -> dict[str, str]:
    """Return the files of a Helm chart with the same objects: path -> content. JSON is YAML."""
    open_shape = Shape(
        "{{ .Values.image }}", "{{ .Values.clusterDomain }}", "{{ .Release.Namespace }}", _RESOURCES, shape.version
    )
    made = [each for each in objects(files, open_shape) if each["kind"] != "Namespace"]
    kinds = [each for each in made if each["kind"] == "CustomResourceDefinition"]
    rest = [json.dumps(each, indent=1) for each in made if each not in kinds]
    about = {"apiVersion": "v2", "name": NAME, "version": shape.version, "appVersion": shape.version}
    values = {"image": shape.image, "clusterDomain": shape.domain, "resources": shape.resources}
    return {
        "Chart.yaml": _json({**about, "description": "The MPI Operator, fit for clusters whose pods are Slurm jobs"}),
        VALUES: _json(values),
        "crds/kinds.yaml": "---\n".join(_text(each) for each in kinds),
        "templates/operator.yaml": "\n---\n".join(rest).replace(f'"{_RESOURCES}"', "{{ toJson .Values.resources }}")
        + "\n",
    }


def examples(images: Mapping[str, str]) -> dict[str, str]:
    """Return an MPIJob for each MPI with an image: file -> content."""
    return {
        f"pi-{name}.yaml": f"# {_EXAMPLE}\n" + _text(_example(name, mpi, image))
        for name, mpi in _MPIS.items()
        if (image := images.get(f"mpi-operator-{name}"))
    }


def _example(name: str, mpi: str, image: str) -> Object:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": f"pi-{name}"},
        "spec": {
            "slotsPerWorker": 1,
            "mpiImplementation": mpi,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "sshAuthMountPath": f"{_HOME}/.ssh",
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": _replicas(1, image, "launcher", ["mpirun", "-n", "2", f"{_HOME}/pi"], 128),
                "Worker": _replicas(2, image, "worker", ["/usr/sbin/sshd", "-De", "-f", f"{_HOME}/.sshd_config"], 256),
            },
        },
    }


def _replicas(count: int, image: str, name: str, command: list[str], memory_mib: int) -> Object:
    container: Object = {
        "name": name,
        "image": image,
        "securityContext": {"runAsUser": 1000},
        "command": command,
        "resources": {"requests": {"cpu": "1", "memory": f"{memory_mib}Mi"}},
    }
    if name == "worker":
        # Each one has sshd start a process, beside the ranks; the first ones come sooner than this.
        container["readinessProbe"] = {"tcpSocket": {"port": 2222}, "periodSeconds": 30}
    # The operator's OnFailure would delete the pod of a launcher that failed, with its log.
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}


def _fitting(item: Object, shape: Shape) -> Object:
    kind = item["kind"]
    if kind == "Namespace":
        return {**item, "metadata": {**item["metadata"], "name": shape.namespace}}
    if kind == "CustomResourceDefinition":
        return {key: _shorter(value) for key, value in item.items()}
    if kind == "ClusterRoleBinding":
        return {**item, "subjects": [{**each, "namespace": shape.namespace} for each in item["subjects"]]}
    if "namespace" in item["metadata"]:
        item = {**item, "metadata": {**item["metadata"], "namespace": shape.namespace}}
    return _controller(item, shape) if kind == "Deployment" else item


def _controller(deployment: Object, shape: Shape) -> Object:
    """Return the controller's Deployment: one pod, ready when it serves its health."""
    labels = {**deployment["metadata"].get("labels", {}), "app.kubernetes.io/version": shape.version}
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    arguments = [each for each in container["args"] if not each.startswith("--lock-namespace")]
    container = {
        **container,
        "image": shape.image,
        "args": [
            *arguments,
            f"--lock-namespace={shape.namespace}",
            f"--cluster-domain={shape.domain}",
            GANGS,
            *REQUESTS,
        ],
        "resources": shape.resources,
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": PORT}, "periodSeconds": 2},
    }
    template = {**template, "spec": {**template["spec"], "containers": [container]}}
    metadata = {**deployment["metadata"], "labels": labels}
    # Two of them would wait for each other's lease.
    spec = {**deployment["spec"], "strategy": {"type": "Recreate"}, "template": template}
    return {**deployment, "metadata": metadata, "spec": spec}


def _shorter(item: Any, *, within_pod: bool = False) -> Any:
    """Return a definition without the descriptions of pod templates."""
    if isinstance(item, list):
        return [_shorter(each, within_pod=within_pod) for each in item]
    if not isinstance(item, dict):
        return item
    return {
        key: _shorter(value, within_pod=within_pod or key == "template")
        for key, value in item.items()
        if not (within_pod and key == "description" and isinstance(value, str))
    }


def _text(item: Object) -> str:
    """Return an object as YAML; a definition, which nobody reads, as the JSON that is YAML too: a third of the size."""
    if item["kind"] == "CustomResourceDefinition":
        return json.dumps(item) + "\n"
    return str(yaml.dump(item, Dumper=yaml.CSafeDumper, sort_keys=False, width=120))


def _documents(text: str) -> Iterator[Object]:
    return yaml.load_all(text, Loader=yaml.CSafeLoader)


def _json(item: Mapping[str, Any]) -> str:
    return json.dumps(item, indent=2) + "\n"
