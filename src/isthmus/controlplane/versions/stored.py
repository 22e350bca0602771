"""Groups of pods in etcd, written as the next release reads them.

Kubernetes converts what it stores only between versions that a release has; one that is alpha may be gone in the next
release, which then cannot list the kind at all, nor delete what is there. PodGroups and Workloads of 1.36
(scheduling.k8s.io/v1alpha2) are such: 1.37 has v1alpha3 and v1beta1, whose fields are the same with other numbers.
So before the API server of another release starts, they are rewritten, field by field and nothing else of them.

Values are `k8s`, a zero byte and a message of protobuf with the version, the kind and the object
(k8s.io/apimachinery, runtime.Unknown).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from isthmus.clients.etcd import raw
from isthmus.clients.etcd.gateway import Gateway

PREFIXES = ("/registry/podgroups/", "/registry/workloads/")
_MAGIC = b"k8s\0"
_GROUP = "scheduling.k8s.io"
_BEFORE, _SINCE = "v1alpha2", frozenset({"v1alpha3", "v1beta1"})
_VARINT, _BYTES = 0, 2
# Of the envelope, of its TypeMeta, and of an object.
_TYPE, _RAW, _API, _KIND, _SPEC = 1, 2, 1, 2, 2
# The fields of a PodGroup's spec. Not there: 5, a disruption mode, whose feature is off (another type since).
_NUMBERS = {1: 2, 2: 3, 3: 4, 4: 5, 6: 7, 7: 8}
_TEMPLATE, _TEMPLATE_WORKLOAD = 1, 1

Field = tuple[int, int | bytes]

_log = logging.getLogger(__name__)


class StoredError(ValueError):
    """A value is no object as Kubernetes stores it."""


def rewrite(gateway: Gateway, version: str) -> int:
    """Rewrite all groups of pods that a release with another version of them cannot read; return how many.

    One that is nothing of Kubernetes' stays as it is, and the release says so itself.

    Args:
        gateway: the cluster's etcd, which no API server writes to meanwhile.
        version: of scheduling.k8s.io, that the release has.

    Raises:
        EtcdError: etcd did not answer.
    """
    done = 0
    for entry in (each for prefix in PREFIXES for each in raw.entries(gateway, prefix)):
        try:
            value = rewritten(entry.value, version)
        except StoredError as error:
            _log.warning("%s: %s", entry.key.decode(errors="replace"), error)
            continue
        done += value != entry.value and raw.replace(gateway, entry, value)
    return done


def rewritten(value: bytes, version: str) -> bytes:
    """Return an object as another version has it; as it is where nothing is to be done.

    Raises:
        StoredError: it is no object.
    """
    if not value.startswith(_MAGIC):
        raise StoredError("it is not stored as Kubernetes does")
    envelope = list(_fields(value[len(_MAGIC) :]))
    of_type = dict(_fields(_bytes(dict(envelope), _TYPE)))
    if _bytes(of_type, _API) != f"{_GROUP}/{_BEFORE}".encode() or version not in _SINCE:
        return value
    changed = {_TYPE: _message((of_type | {_API: f"{_GROUP}/{version}".encode()}).items())}
    if _bytes(of_type, _KIND) == b"PodGroup":
        changed[_RAW] = _object(_bytes(dict(envelope), _RAW))
    return _MAGIC + _message((number, changed.get(number, part)) for number, part in envelope)


def _object(message: bytes) -> bytes:
    fields = _fields(message)
    return _message((number, _message(_spec(_fields(_raw(one)))) if number == _SPEC else one) for number, one in fields)


def _spec(fields: Iterable[Field]) -> Iterator[Field]:
    for number, part in fields:
        if number in _NUMBERS:
            # What named a template through a reference names it itself.
            inner = _bytes(dict(_fields(_raw(part))), _TEMPLATE_WORKLOAD) if number == _TEMPLATE else part
            yield _NUMBERS[number], inner


def _raw(part: int | bytes) -> bytes:
    if not isinstance(part, bytes):
        raise StoredError("it has a number where a message belongs")
    return part


def _bytes(fields: Mapping[int, int | bytes], number: int) -> bytes:
    return _raw(fields.get(number, b""))


def _fields(message: bytes) -> Iterator[Field]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        found, at = _varint(message, at)
        if kind == _VARINT:
            yield number, found
        elif kind == _BYTES and at + found <= len(message):
            yield number, message[at : at + found]
            at += found
        else:
            raise StoredError("it is cut off, or has fields of another kind")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(message) and shift < 64:
        number |= (message[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 0x80:
            return number, at
    raise StoredError("it is cut off")


def _message(fields: Iterable[Field]) -> bytes:
    return b"".join(_written(number, part) for number, part in fields)


def _written(number: int, part: int | bytes) -> bytes:
    if isinstance(part, int):
        return _coded(number << 3 | _VARINT) + _coded(part)
    return _coded(number << 3 | _BYTES) + _coded(len(part)) + part


def _coded(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(made) + bytes([number])
