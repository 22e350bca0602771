"""Files from the keys of a ConfigMap or a Secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isthmus.kubelet.volumes.kind import missing
from isthmus.model.pod_inputs import Object
from isthmus.podproto.plan import File


def files(what: str, name: str, data: Mapping[str, bytes] | None, source: Object, mode: int) -> Iterator[File]:
    """Give the files of all keys, or of those that the source lists.

    Args:
        what: the object's kind, for messages.
        name: its name.
        data: its keys; None where it is not there.
        source: with `optional` and `items`.
        mode: of files that have none of their own.

    Raises:
        UnreadyError: the object or a key is missing, and not optional.
    """
    optional = source.get("optional")
    if data is None and not optional:
        raise missing(f'{what} "{name}" not found; create it, or make it optional')
    known = data or {}
    if not (items := source.get("items")):
        yield from (File(key, mode, known[key]) for key in sorted(known))
        return
    for item in items:
        if item["key"] in known:
            yield File(item["path"], item.get("mode", mode), known[item["key"]])
        elif not optional:
            raise missing(f'{what} "{name}" has no key {item["key"]!r}; add it')
