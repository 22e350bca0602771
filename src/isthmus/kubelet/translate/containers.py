"""Translates a container of a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.slurm import annotations as notes
from isthmus.kubelet.slurm import flags
from isthmus.kubelet.translate import actions, identity
from isthmus.kubelet.translate.environment import environment
from isthmus.kubelet.translate.resources import Demand, is_sidecar, memory_limit_mib
from isthmus.kubelet.volumes import registry as volumes
from isthmus.model.pod_inputs import Image, Object, Resolved
from isthmus.podproto.expansion import constant, escape, expand_known
from isthmus.podproto.plan import Container, Mount, Propagation
from isthmus.podproto.reasons import Reason

_TERMINATION = "/dev/termination-log"


def container(pod: Object, text: Object, demand: Demand, resolved: Resolved, hostname: str) -> Container:
    """Return a container of any kind.

    Args:
        pod: of the container.
        text: the container's spec.
        demand: of the pod.
        resolved: the pod's references.
        hostname: of the pod.

    Raises:
        UnreadyError: a reference is missing, or its image is not ready.
    """
    image = resolved.images.get(text.get("image", ""))
    if image is None:
        raise UnreadyError(Reason.CONFIG, f"image {text.get('image')!r} is not ready; wait for it", text["name"])
    found = environment(pod, text, demand, resolved, hostname)
    limit_mib = memory_limit_mib(text)
    argv = _argv(text, image, found.known)
    return Container(
        name=text["name"],
        image=image.path,
        image_id=image.id,
        image_name=text.get("image"),
        argv=argv,
        env=found.variables,
        cwd=text.get("workingDir") or image.workdir or None,
        user=identity.user(pod, text, image),
        read_only=bool(identity.security(pod, text).get("readOnlyRootFilesystem")),
        tty=bool(text.get("tty")),
        stdin=bool(text.get("stdin")),
        stdin_once=bool(text.get("stdinOnce")),
        mounts=_mounts(pod, text, found.known),
        startup=actions.probe(text, "startupProbe"),
        liveness=actions.probe(text, "livenessProbe"),
        readiness=actions.probe(text, "readinessProbe"),
        post_start=actions.hook(text, "postStart"),
        pre_stop=actions.hook(text, "preStop"),
        termination_path=text.get("terminationMessagePath") or _TERMINATION,
        termination_policy=text.get("terminationMessagePolicy") or "File",
        sidecar=is_sidecar(text),
        memory_mib=None if limit_mib is None or limit_mib >= demand.memory_mib else limit_mib,
        **_tasks(pod, text, argv),
        capabilities=identity.capabilities(text),
        escalates=identity.security(pod, text).get("allowPrivilegeEscalation") is not False,
        seccomp=identity.seccomp(pod, text, resolved.settings.home),
    )


def _tasks(pod: Object, text: Object, argv: Sequence[str]) -> dict[str, Any]:
    """Return the tasks of a container that runs as several; None for all others."""
    if flags.mpi_container(pod) != text["name"]:
        return {}
    home = notes.is_true(pod, notes.MPI_HOME)
    return {"mpi": True, "mpi_flags": flags.mpi(pod), "mpi_home": home, "mpi_wrapper": flags.wrapper(pod, argv)}


def _argv(text: Object, image: Image, known: Mapping[str, str]) -> tuple[str, ...]:
    """Merge the image's entrypoint and command with the pod's (tasks/inject-data-application/define-command...)."""
    command = [expand_known(word, known) for word in text.get("command") or ()]
    words = [expand_known(word, known) for word in text.get("args") or ()]
    if not command:
        command = [escape(word) for word in image.entrypoint]
        words = words or [escape(word) for word in image.cmd]
    if not (command or words):
        message = "no command specified: the image has none; set command in the pod"
        raise UnreadyError(Reason.CONFIG, message, text["name"])
    return (*command, *words)


def _mounts(pod: Object, text: Object, known: Mapping[str, str]) -> tuple[Mount, ...]:
    read_only = volumes.read_only(pod)
    found = [
        Mount(
            mount["name"],
            mount["mountPath"],
            _sub_path(text, mount, known),
            bool(mount.get("readOnly")) or mount["name"] in read_only,
            Propagation(mount.get("mountPropagation") or "None"),
        )
        for mount in text.get("volumeMounts") or ()
    ]
    return tuple(sorted(found, key=lambda mount: len(PurePosixPath(mount.path).parts)))


def _sub_path(text: Object, mount: Object, known: Mapping[str, str]) -> str | None:
    if not mount.get("subPathExpr"):
        return mount.get("subPath") or None
    path = constant(expand_known(mount["subPathExpr"], known))
    if path is None or "$(" in path or path.startswith("/") or ".." in path.split("/"):
        message = f"subPathExpr {mount['subPathExpr']!r} names no folder of the volume; use known variables only"
        raise UnreadyError(Reason.CONFIG, message, text["name"])
    return path
