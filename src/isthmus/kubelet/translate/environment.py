"""A container's environment, in the order of increasing weight: image, host name, Services, envFrom, env.

The last definition of a name wins, but `$(NAME)` refers to an earlier one, and never to the image's.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.slurm import flags
from isthmus.kubelet.translate import downward, identity
from isthmus.kubelet.translate.resources import Demand
from isthmus.model.pod_inputs import Image, Object, Resolved
from isthmus.podproto.expansion import escape, expand_known
from isthmus.podproto.plan import Fact, Variable
from isthmus.podproto.reasons import Reason


@dataclass(frozen=True, slots=True)
class Environment:
    """A container's variables.

    Attributes:
        variables: for the plan.
        known: name -> escaped value, what `$(NAME)` in commands stands for.
    """

    variables: tuple[Variable, ...]
    known: Mapping[str, str] = field(default_factory=dict)


def environment(pod: Object, container: Object, demand: Demand, resolved: Resolved, hostname: str) -> Environment:
    """Return a container's variables.

    Raises:
        UnreadyError: a ConfigMap, a Secret or a key that is not optional is missing.
    """
    given = resolved.images.get(container.get("image", ""))
    variables = [*_home(pod, container, given), *_image(given), Variable("HOSTNAME", escape(hostname))]
    known: dict[str, str] = {}
    for variable in (
        *(Variable(name, escape(value)) for name, value in services(pod, resolved.services)),
        *_sources(container, resolved),
    ):
        variables.append(variable)
        known[variable.name] = variable.value or ""
    for entry in container.get("env") or ():
        found = _entry(pod, container, entry, demand, resolved, known)
        if found:
            variables.append(found)
            known[found.name] = f"$({found.name})" if found.fact else found.value or ""
    return Environment(tuple(variables), known)


def _home(pod: Object, container: Object, image: Image | None) -> Iterator[Variable]:
    """Set HOME of the container's user, with the lowest precedence; MPI ranks run as the job's user, with that home."""
    if image and flags.mpi_container(pod) != container["name"] and (path := identity.home(pod, container, image)):
        yield Variable("HOME", escape(path))


def references(containers: Iterable[Object], kind: str) -> Iterator[str]:
    """Give the names of all ConfigMaps, or all Secrets, that variables of containers come from.

    Args:
        containers: of the pod.
        kind: `configMap` or `secret`.
    """
    for one in containers:
        found = [source.get(f"{kind}Ref") for source in one.get("envFrom") or ()]
        found += [(entry.get("valueFrom") or {}).get(f"{kind}KeyRef") for entry in one.get("env") or ()]
        yield from (str(reference["name"]) for reference in found if reference and reference.get("name"))


def services(pod: Object, known: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Give the variables of Services (concepts/services-networking/service, "Discovering services").

    Args:
        pod: who sees them; without service links it sees `default/kubernetes` alone.
        known: Services; those without an address give nothing.
    """
    namespace = pod["metadata"].get("namespace", "default")
    links = pod["spec"].get("enableServiceLinks", True)
    for service in sorted(known, key=lambda one: str(one["metadata"]["name"])):
        meta = service["metadata"]
        master = (meta.get("namespace"), meta["name"]) == ("default", "kubernetes")
        address = service["spec"].get("clusterIP")
        if address not in (None, "", "None") and (master or (links and meta.get("namespace") == namespace)):
            yield from _service(meta["name"], address, service["spec"].get("ports") or ())


def _service(name: str, address: str, ports: Iterable[Object]) -> Iterator[tuple[str, str]]:
    prefix = name.upper().replace("-", "_")
    listed = list(ports)
    yield f"{prefix}_SERVICE_HOST", address
    for index, port in enumerate(listed):
        if index == 0:
            yield f"{prefix}_SERVICE_PORT", str(port["port"])
            yield f"{prefix}_PORT", f"{port.get('protocol', 'TCP').lower()}://{_url(address)}:{port['port']}"
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}", str(port["port"])
        protocol = port.get("protocol", "TCP")
        one = f"{prefix}_PORT_{port['port']}_{protocol}"
        yield one, f"{protocol.lower()}://{_url(address)}:{port['port']}"
        yield f"{one}_PROTO", protocol.lower()
        yield f"{one}_PORT", str(port["port"])
        yield f"{one}_ADDR", address


def _url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _image(image: Image | None) -> Iterator[Variable]:
    for text in image.env if image else ():
        name, _, value = text.partition("=")
        yield Variable(name, escape(value))


def _sources(container: Object, resolved: Resolved) -> Iterator[Variable]:
    for source in container.get("envFrom") or ():
        for key, value in _whole(container, source, resolved).items():
            yield Variable(f"{source.get('prefix') or ''}{key}", escape(value))


def _whole(container: Object, source: Object, resolved: Resolved) -> dict[str, str]:
    if reference := source.get("configMapRef"):
        found = _object("configmap", reference, resolved.config_maps, container)
        return dict(found.get("data") or {})
    found = _object("secret", source["secretRef"], resolved.secrets, container)
    return {key: _text(value) for key, value in (found.get("data") or {}).items()}


def _entry(
    pod: Object, container: Object, entry: Object, demand: Demand, resolved: Resolved, known: Mapping[str, str]
) -> Variable | None:
    name, source = entry["name"], entry.get("valueFrom")
    if not source:
        return Variable(name, expand_known(entry.get("value") or "", known))
    if reference := source.get("fieldRef"):
        found = downward.field(pod, reference["fieldPath"])
        return Variable(name, fact=found) if isinstance(found, Fact) else Variable(name, escape(found))
    if reference := source.get("resourceFieldRef"):
        value = downward.resource(container, demand, reference["resource"], reference.get("divisor") or 1)
        return Variable(name, value)
    key = _key(container, source, resolved)
    return None if key is None else Variable(name, escape(key))


def _key(container: Object, source: Object, resolved: Resolved) -> str | None:
    secret = "secretKeyRef" in source
    reference = source["secretKeyRef" if secret else "configMapKeyRef"]
    kind, known = ("secret", resolved.secrets) if secret else ("configmap", resolved.config_maps)
    data = _object(kind, reference, known, container).get("data") or {}
    if reference["key"] in data:
        return _text(data[reference["key"]]) if secret else str(data[reference["key"]])
    if reference.get("optional"):
        return None
    message = f"couldn't find key {reference['key']} in {kind} {reference.get('name')!r}; add it, or make it optional"
    raise UnreadyError(Reason.CONFIG, message, container["name"])


def _object(kind: str, reference: Object, known: Mapping[str, Object], container: Object) -> Object:
    name = reference.get("name") or ""
    if name in known:
        return known[name]
    if reference.get("optional"):
        return {}
    message = f'{kind} "{name}" not found; create it in the namespace of the pod, or make it optional'
    raise UnreadyError(Reason.CONFIG, message, container["name"])


def _text(data: str) -> str:
    # A value that is not text is shown escaped instead of failing the pod.
    return base64.b64decode(data).decode(errors="replace")
