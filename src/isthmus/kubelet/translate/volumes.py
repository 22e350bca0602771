"""A pod's volumes, as what the supervisor makes on the compute node.

What the API gives as content (ConfigMaps, Secrets, tokens, the downward API) becomes files; a claim becomes the path
its PersistentVolume stands for. Kinds that are not here are refused before, see refusals.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping

from isthmus.kubelet.pods.unready import Unready, UnreadyError
from isthmus.kubelet.translate import downward
from isthmus.kubelet.translate.quantities import whole
from isthmus.kubelet.translate.resources import Demand
from isthmus.model.pod_inputs import Object, Resolved, TokenRequest
from isthmus.model.storage import is_provisioned
from isthmus.podproto.plan import Fact, File, Volume, VolumeKind

_MODE = 0o644
_TOKEN_S = 3600
_CONTENT = frozenset({"configMap", "secret", "projected", "downwardAPI"})


def volumes(pod: Object, demand: Demand, resolved: Resolved) -> tuple[Volume, ...]:
    """Return all volumes of a pod.

    Raises:
        UnreadyError: something they name, and not as optional, is missing.
    """
    return tuple(_volume(pod, volume, demand, resolved) for volume in pod["spec"].get("volumes") or ())


def changing(pod: Object, demand: Demand, resolved: Resolved) -> tuple[Volume, ...]:
    """Return the volumes of a pod whose content the API gives, as it is now.

    Raises:
        UnreadyError: something they name, and not as optional, is missing.
    """
    found = (one for one in pod["spec"].get("volumes") or () if _CONTENT & {*one})
    return tuple(_volume(pod, volume, demand, resolved) for volume in found)


def claim_of(pod: Object, volume: Object) -> str | None:
    """Return the claim a volume names, or that is made for it; None for other volumes."""
    if claim := volume.get("persistentVolumeClaim"):
        return str(claim["claimName"])
    return f"{pod['metadata']['name']}-{volume['name']}" if "ephemeral" in volume else None


def tokens(pod: Object) -> Iterator[TokenRequest]:
    """Give the tokens a pod's volumes want."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken"):
                yield _request(source["serviceAccountToken"])


def _volume(pod: Object, volume: Object, demand: Demand, resolved: Resolved) -> Volume:
    name, gid = volume["name"], (pod["spec"].get("securityContext") or {}).get("fsGroup")
    if (empty := volume.get("emptyDir")) is not None:
        kind = VolumeKind.MEMORY if empty.get("medium") == "Memory" else VolumeKind.DIR
        limit = empty.get("sizeLimit")
        return Volume(name, kind, size_bytes=None if limit in (None, "0") else whole(limit), gid=gid)
    if (host := volume.get("hostPath")) is not None:
        return Volume(name, VolumeKind.HOST, path=host["path"], host_type=host.get("type") or "")
    if (image := volume.get("image")) is not None:
        return _image(name, image.get("reference") or "", resolved)
    if claim := claim_of(pod, volume):
        return _persistent(pod, volume, claim, resolved.volumes)
    return Volume(name, VolumeKind.FILES, files=_files(pod, volume, demand, resolved), gid=gid)


def _image(name: str, reference: str, resolved: Resolved) -> Volume:
    if reference not in resolved.images:
        raise UnreadyError(Unready.MOUNT, f"image {reference!r} of volume {name} is not ready; wait for it")
    return Volume(name, VolumeKind.IMAGE, path=resolved.images[reference].path)


def _persistent(pod: Object, volume: Object, claim: str, known: Mapping[str, Object]) -> Volume:
    if claim not in known:
        raise UnreadyError(Unready.MOUNT, f'persistentvolumeclaim "{claim}" is not bound; create it, or wait for it')
    spec, name = known[claim]["spec"], volume["name"]
    group, kept = _group(pod, volume, known[claim])
    for kind in ("hostPath", "local"):
        if spec.get(kind):
            found, host_type = spec[kind]["path"], spec[kind].get("type") or ""
            return Volume(name, VolumeKind.HOST, path=found, host_type=host_type, gid=group, is_group_kept=kept)
    message = f'the volume of persistentvolumeclaim "{claim}" is neither hostPath nor local; use such a StorageClass'
    raise UnreadyError(Unready.MOUNT, message)


def _group(pod: Object, volume: Object, persistent: Object) -> tuple[int | None, bool]:
    """Return fsGroup for a volume, and whether what its folder shows is enough (fsGroupChangePolicy).

    What somebody else made and named as a hostPath is left as it is, as everywhere; so is what the pod only reads.
    """
    context = pod["spec"].get("securityContext") or {}
    is_read = (volume.get("persistentVolumeClaim") or {}).get("readOnly")
    if is_read or not (persistent["spec"].get("local") or is_provisioned(persistent)):
        return None, False
    return context.get("fsGroup"), context.get("fsGroupChangePolicy") == "OnRootMismatch"


def _files(pod: Object, volume: Object, demand: Demand, resolved: Resolved) -> tuple[File, ...]:
    """Return the files of a volume; of two with one path the later wins."""
    projected = volume.get("projected")
    if projected is None:
        sources, mode = (
            [volume],
            next(
                (
                    volume[kind].get("defaultMode")
                    for kind in ("configMap", "secret", "downwardAPI")
                    if volume.get(kind)
                ),
                None,
            ),
        )
    else:
        sources, mode = projected.get("sources") or [], projected.get("defaultMode")
    default = _MODE if mode is None else mode
    found = [file for source in sources for file in _source(pod, source, default, demand, resolved)]
    return tuple({file.path: file for file in found}.values())


def _source(pod: Object, source: Object, mode: int, demand: Demand, resolved: Resolved) -> Iterator[File]:
    if (reference := source.get("configMap")) is not None:
        yield from _keys("configmap", reference.get("name") or "", reference, resolved.config_maps, _config_map, mode)
    elif (reference := source.get("secret")) is not None:
        name = reference.get("secretName") or reference.get("name") or ""
        yield from _keys("secret", name, reference, resolved.secrets, _secret, mode)
    elif (reference := source.get("downwardAPI")) is not None:
        for item in reference.get("items") or ():
            yield File(item["path"], item.get("mode", mode), _downward(pod, item, demand).encode())
    elif (reference := source.get("serviceAccountToken")) is not None:
        token = resolved.tokens.get(_request(reference))
        if token is None:
            raise UnreadyError(Unready.MOUNT, "the API server has given no service account token yet; wait for it")
        yield File(reference["path"], mode, token.encode())


def _request(source: Object) -> TokenRequest:
    return TokenRequest(source.get("audience") or "", source.get("expirationSeconds") or _TOKEN_S)


def _keys(
    kind: str,
    name: str,
    reference: Object,
    known: Mapping[str, Object],
    read: Callable[[Object], Mapping[str, bytes]],
    mode: int,
) -> Iterator[File]:
    optional = reference.get("optional")
    if name not in known and not optional:
        raise UnreadyError(Unready.MOUNT, f'{kind} "{name}" not found; create it, or make it optional')
    data = read(known[name]) if name in known else {}
    items = reference.get("items")
    if not items:
        yield from (File(key, mode, data[key]) for key in sorted(data))
        return
    for item in items:
        if item["key"] in data:
            yield File(item["path"], item.get("mode", mode), data[item["key"]])
        elif not optional:
            raise UnreadyError(Unready.MOUNT, f'{kind} "{name}" has no key {item["key"]!r}; add it')


def _config_map(found: Object) -> dict[str, bytes]:
    binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
    return {**binary, **{key: value.encode() for key, value in (found.get("data") or {}).items()}}


def _secret(found: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}


def _downward(pod: Object, item: Object, demand: Demand) -> str:
    if reference := item.get("fieldRef"):
        found = downward.field(pod, reference["fieldPath"])
        # The API lets no address into a file.
        return "" if isinstance(found, Fact) else found
    reference = item["resourceFieldRef"]
    containers = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]
    container: Object = next((one for one in containers if one["name"] == reference.get("containerName")), {})
    return downward.resource(container, demand, reference["resource"], reference.get("divisor") or 1)
