"""An administrator's list of CNI plugins: what of it can be used, for the deployer's checks and the daemon.

The specification (containernetworking/cni, SPEC.md, 1.0 and 1.1) says what a list may hold; the rest is what pods of
jobs need of it. Who may change the list, or a program it names, decides what root runs on each node: both belong to
root, and so does every folder on the way.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FOLDER, PLUGINS = "/etc/cni/net.d", "/usr/lib/cni"
# 0.4.0 is the first with CHECK, and the newest that some of the plugins know.
VERSIONS = ("0.4.0", "1.0.0", "1.1.0")
LOOPBACK = "loopback"
LIST_MAX_BYTES = 65536
_PLUGINS_MAX = 16
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\.conflist")
# SPEC.md, "Section 1" and "Section 3"; a type is a program's file name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Linux: IFNAMSIZ less the zero at the end.
_INTERFACE = re.compile(r"(?!lo$|\.{1,2}$)[A-Za-z0-9_.-]{1,15}|[A-Za-z0-9_.-]{1,14}\*")
# What only a runtime may put in, SPEC.md "Section 3".
_RUNTIMES = ("prevResult", "runtimeConfig", "cni.dev/valid-attachments")


def is_file_name(text: str) -> bool:
    """Return whether a text can name a list in its folder."""
    return _FILE.fullmatch(text) is not None


def is_interface(text: str) -> bool:
    """Return whether a text can name an interface, or all that begin with what is before a `*`."""
    return _INTERFACE.fullmatch(text) is not None


def matches(pattern: str, interface: str) -> bool:
    """Return whether an interface is meant by a pattern."""
    return interface.startswith(pattern[:-1]) if pattern.endswith("*") else interface == pattern


def list_problems(text: str) -> Iterator[str]:
    """Yield what is wrong with a list's text, each with its remedy."""
    if len(text.encode()) > LIST_MAX_BYTES:
        yield f"it is longer than {LIST_MAX_BYTES} bytes; name a list of CNI plugins"
        return
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield f"it is no JSON ({error}); write it as the CNI specification has it"
        return
    if not isinstance(document, dict):
        yield "it is no JSON object; write it as the CNI specification has it"
        return
    yield from _head(document)
    plugins = document.get("plugins")
    if not isinstance(plugins, list) or not 1 <= len(plugins) <= _PLUGINS_MAX:
        yield f"plugins is no list of 1 to {_PLUGINS_MAX}; a single plugin's configuration goes into such a list"
        return
    for plugin in plugins:
        yield from _plugin(plugin)


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    version, name = document.get("cniVersion"), document.get("name")
    if version not in VERSIONS:
        yield f"cniVersion is {_shown(version)}; use one of {', '.join(VERSIONS)}, older ones have no CHECK"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"name is {_shown(name)}; use up to 64 letters, digits, and _ . - behind the first"
    for key in ("disableCheck", "disableGC"):
        if not isinstance(document.get(key, False), bool):
            yield f"{key} is {_shown(document[key])}; use true or false"


def _plugin(plugin: object) -> Iterator[str]:
    if not isinstance(plugin, dict):
        yield f"a plugin is {_shown(plugin)}; write an object with its type"
        return
    kind = plugin.get("type")
    yield from _type(kind, "a plugin's type")
    for key, needs_type in (("ipam", "type" in _object(plugin, "ipam")), ("delegate", False)):
        inner = plugin.get(key)
        if inner is not None and not isinstance(inner, dict):
            yield f"{key} of {_shown(kind)} is {_shown(inner)}; write an object"
        elif inner and (needs_type or "type" in inner):
            yield from _type(inner["type"], f"the type in {key} of {_shown(kind)}")
    for key in _RUNTIMES:
        if key in plugin:
            yield f"{_shown(kind)} has {key}, which the daemon gives to plugins; take it out"
    for each in (plugin, _object(plugin, "delegate")):
        if each.get("ipMasq"):
            yield (
                f"{_shown(kind)} has ipMasq, behind which slurmd of another node cannot answer a pod's srun; take it"
                " out, the daemon masquerades what leaves the cluster"
            )
    if kind == "bridge" and not (plugin.get("isGateway") or plugin.get("isDefaultGateway")):
        yield "bridge has no address for the node, where pods have DNS and PMIx; add isDefaultGateway: true"


def _type(kind: object, what: str) -> Iterator[str]:
    if not isinstance(kind, str) or not _NAME.fullmatch(kind):
        yield f"{what} is {_shown(kind)}; name a program of the plugins' folder, without a path"


def _object(plugin: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = plugin.get(key)
    return found if isinstance(found, dict) else {}


def _shown(value: object) -> str:
    return json.dumps(value)[:80]


def programs(document: Mapping[str, Any]) -> list[str]:
    """Return the programs that a valid list names, and the one that every pod needs."""
    found = {LOOPBACK}
    for plugin in document["plugins"]:
        inner = (_object(plugin, "ipam"), _object(plugin, "delegate"), _object(_object(plugin, "delegate"), "ipam"))
        found |= {str(each["type"]) for each in (plugin, *inner) if "type" in each}
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Rights:
    """Whose a file or folder is, and who may change it.

    Attributes:
        uid: of its owner.
        mode: all of it, as stat(2) has it.
    """

    uid: int
    mode: int


def rights_problem(path: str, rights: Rights, *, is_last: bool = False) -> str:
    """Return why somebody besides root could change what a path leads to; empty where nobody can.

    Args:
        path: a folder on the way, or the file or folder itself.
        rights: of it, not of what a link leads to.
        is_last: whether names in it count, too: then it must not even be everybody's with the sticky bit.
    """
    if stat.S_ISLNK(rights.mode):
        return f"{path} is a link; name what it leads to"
    if rights.uid != 0:
        return f"{path} belongs to uid {rights.uid}; run chown root {path}"
    sticky = stat.S_ISDIR(rights.mode) and rights.mode & stat.S_ISVTX and not is_last
    if rights.mode & 0o022 and not sticky:
        return f"{path} may be written by others than root; run chmod go-w {path}"
    return ""
