"""Joins a node: requests its manifest, refuses a mismatch before any change, then applies it.

The first question changes nothing on either side; only when all fits does the node ask for its certificate, which
uses the token. All steps look first, so a join that was cut goes on where it was, and a second one changes nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from isthmus.node import accounts, certificates
from isthmus.node.errors import JoinError, RefusedError
from isthmus.node.files import Wanted, edited, wanted
from isthmus.node.host import Host
from isthmus.node.manifest import Field, Manifest, applies, filled
from isthmus.node.remote import Answer, Asking, Controller
from isthmus.node.tokens import Token
from isthmus.support import durable

IDENTITY = "/etc/isthmus/cluster.json"
RELEASE = "/opt/isthmus/program"
STATE = "/var/lib/isthmus/node"
TLS = "/etc/isthmus/tls"
_REGISTER_S = 120
_DOWN = ("down", "unknown", "unk")


@dataclass(frozen=True, slots=True)
class Kept:
    """What a node remembers of its join, so that it may ask again without a token.

    Attributes:
        server: `host:port`.
        name: its own.
        pin: hash of the key of the cluster's CA.
        whole: whether the last join came to its end.
    """

    server: str
    name: str
    pin: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What `isthmus node join --json` prints; `schema` changes when a field changes its meaning."""

    schema: int
    name: str
    cluster: str
    changed: bool
    changes: list[str]
    state: str


class Joining:
    """One join.

    Args:
        host: this node.
        controller: that lets it in.
        say: shows progress.
        check: change nothing, report what would.
        install: install what the cluster's nodes need of the distribution's packages, on a host without our image.
    """

    def __init__(
        self,
        host: Host,
        controller: Controller,
        say: Callable[[str], None],
        *,
        check: bool,
        install: bool = False,
    ) -> None:
        self._host, self._controller, self._say, self._check = host, controller, say, check
        self._install = install
        self._changes: list[str] = []

    def run(self, name: str, token: Token | None, kept: Kept) -> Result:
        """Join.

        Raises:
            RefusedError: this node does not belong there; nothing was changed.
            JoinError: it did not get to the end; run again, it goes on.
        """
        release = self._host.tree.text(RELEASE).strip()
        key, made = self._key()
        asking = Asking(name, release, key, token)
        answer = self._controller.ask(asking, look=True)
        if self._install and not self._check:
            self._bring_packages(answer.manifest)
        self._refuse_misfit(answer.manifest, name, release)
        if not self._check:
            self._keep_key(key)
            answer = self._controller.ask(asking, look=False)
        whole = kept.whole and not made
        if not self._check:
            self._keep(Kept(kept.server, name, kept.pin, False))
        manifest = self._of_this_node(answer.manifest, name)
        self._bring(manifest, answer, key, follow_all=not whole)
        if not self._check:
            self._keep(Kept(kept.server, name, kept.pin, True))
        state = "" if self._check else self._registered(manifest, name)
        return Result(1, name, manifest.cluster["name"], bool(self._changes), self._changes, state)

    def _key(self) -> tuple[bytes, bool]:
        kept = self._host.tree.text(f"{STATE}/key").encode()
        return (kept, False) if kept else (certificates.make_key(), True)

    def _keep_key(self, key: bytes) -> None:
        # Before the controller knows of it: a join that is cut now goes on with the same key.
        self._host.tree.bring(Wanted(Path(STATE), "directory", mode=0o700), check=False)
        self._host.tree.bring(Wanted(Path(f"{STATE}/key"), content=key, mode=0o600), check=False)

    def _keep(self, kept: Kept) -> None:
        durable.write(self._host.tree.at(f"{STATE}/joined.json"), json.dumps(asdict(kept)), mode=0o600)

    def _bring_packages(self, manifest: Manifest) -> None:
        # Of any version: one that must be another is refused as on a host of the image.
        there = self._host.packages(manifest.packages)
        lacking = [name for name in manifest.packages if name not in there]
        if lacking:
            self._host.install(lacking)
            self._note(f"packages {', '.join(lacking)}", True)

    def _refuse_misfit(self, manifest: Manifest, name: str, release: str) -> None:
        identity = self._host.tree.text(IDENTITY)
        problems = [
            *_identity_problems(identity, manifest),
            *_release_problems(release, manifest),
            *_package_problems(self._host.packages(manifest.packages), manifest),
            *_address_problems(self._host.addresses(), self._address(manifest, name), name),
        ]
        if problems:
            raise RefusedError("; ".join(problems))

    def _address(self, manifest: Manifest, name: str) -> str:
        # The inventory knows none of a node whose cloud gives it one: it is that towards the controller.
        return manifest.nodes[name] or self._host.address_towards(self._controller.server)

    def _of_this_node(self, manifest: Manifest, name: str) -> Manifest:
        known = {Field.NAME: name, Field.ADDRESS: self._address(manifest, name), Field.RESOLVER: self._host.resolver()}
        kinds = self._host.kinds()
        entries = {"files", "edits", "same", "units", "mounts"}
        own: dict[str, Any] = {}
        for field in manifest.__dataclass_fields__:
            value = filled(getattr(manifest, field), known)
            own[field] = tuple(each for each in value if applies(each, kinds)) if field in entries else value
        return Manifest(**own)

    def _bring(self, manifest: Manifest, answer: Answer, key: bytes, *, follow_all: bool) -> None:
        check, host = self._check, self._host
        if manifest.hostname:
            self._note("host name", host.set_name(next(iter(manifest.nodes)), check=check))
        for entry in manifest.groups:
            self._note(f"group {entry['name']}", accounts.bring_group(host, entry, check=check))
        for entry in manifest.users:
            self._note(f"user {entry['name']}", accounts.bring_user(host, entry, check=check))
        for name in manifest.daemons:
            self._note(f"account {name}", accounts.bring_daemon(host, name, check=check))
        for entry in manifest.same:
            self._note(entry["path"], self._bring_same(entry, answer.ticket))
        written = [wanted(entry) for entry in manifest.files]
        changed = [str(one.path) for one in written if self._note(str(one.path), host.tree.bring(one, check=check))]
        for entry in manifest.edits:
            self._note(entry["path"], self._edit(entry))
        for name in manifest.certificates:
            self._note(f"{TLS}/{name}.crt", self._certify(name, answer.certificate, key, manifest.renew_days))
        if not check:
            host.follow(
                str(one.path) for one in written if one.state != "absent" and (follow_all or str(one.path) in changed)
            )
        for name, path in manifest.alternatives.items():
            self._note(f"{name} is {path}", host.alternative(name, path, check=check))
        for entry in manifest.mounts:
            self._note(f"{entry['path']} mounted", host.mount(entry, check=check))
        for name in manifest.masked:
            self._note(f"{name} masked", host.mask(name, check=check))
        if not check:
            host.command("systemctl", "daemon-reload")
        for entry in manifest.units:
            for done in host.run_unit(entry, check=check):
                self._note(done, True)

    def _note(self, what: str, changed: bool) -> bool:
        if changed:
            self._changes.append(what)
            self._say(what)
        return changed

    def _bring_same(self, entry: Mapping[str, Any], ticket: str) -> bool:
        one = wanted(entry)
        path = self._host.tree.at(one.path)
        if path.is_file() and _hash(path) == entry["sha256"] and self._host.tree.rights(one):
            return False
        if not self._check:
            self._host.tree.place(one, lambda file: self._controller.fetch(entry["sha256"], ticket, file))
        return True

    def _edit(self, entry: Mapping[str, Any]) -> bool:
        before = self._host.tree.text(entry["path"])
        own = self._host.command("apptainer", "confgen", "/dev/stdout") if entry["kind"] == "apptainer" else before
        return self._host.tree.bring(
            Wanted(Path(entry["path"]), content=edited(entry, own).encode()), check=self._check
        )

    def _certify(self, name: str, certificate: bytes, key: bytes, days: int) -> bool:
        tree, paths = self._host.tree, [f"{TLS}/{name}.key", f"{TLS}/{name}.crt"]
        folder = tree.bring(Wanted(Path(TLS), "directory", mode=0o755), check=self._check)
        kept = Wanted(Path(paths[0]), content=key, mode=0o600)
        found = tree.text(paths[1]).encode()
        # Ansible's certificates have keys of their own, and last as well.
        own = tree.text(paths[0]).encode()
        if own and found and certificates.is_kept(found, own, days):
            return folder
        if not self._check:
            tree.bring(kept, check=False)
            tree.bring(Wanted(Path(paths[1]), content=certificate), check=False)
        return True

    def _registered(self, manifest: Manifest, name: str) -> str:
        """Wait until all units run, and Slurm has the node; return its state there."""
        names = [unit["name"] for unit in manifest.units]
        state, end = "", time.monotonic() + _REGISTER_S
        self._say("waiting for daemons and Slurm")
        while True:
            silent = [unit for unit, found in zip(names, self._host.units(names), strict=True) if not found.runs]
            if "slurmd" in names:
                state = self._host.answer("sinfo", "--noheader", "--nodes", name, "--format", "%T").partition("\n")[0]
            if not silent and ("slurmd" not in names or _is_member(state)):
                return state
            if time.monotonic() > end:
                break
            time.sleep(0.5)
        raise JoinError(
            f"after {_REGISTER_S} s {', '.join(silent) or 'every daemon'} {'does not run' if silent else 'runs'} and"
            f" Slurm has {name} as {state or 'unknown'}; see `journalctl`, and `scontrol show node {name}`"
        )


def _is_member(state: str) -> bool:
    # sinfo(1): `*` for a node that does not answer.
    return bool(state) and not state.endswith("*") and not state.startswith(_DOWN)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _identity_problems(identity: str, manifest: Manifest) -> list[str]:
    if not identity.strip():
        return []
    try:
        known = json.loads(identity)["id"]
    except (ValueError, KeyError, TypeError):
        known = ""
    if known == manifest.cluster["id"]:
        return []
    return [
        f"this host belongs to another cluster than {manifest.cluster['name']} ({IDENTITY}); start it from the image"
    ]


def _release_problems(release: str, manifest: Manifest) -> list[str]:
    if release == manifest.release:
        return []
    return [f"this host has Isthmus {release or 'none'}, the cluster {manifest.release}; make the image again"]


def _package_problems(found: Mapping[str, str], manifest: Manifest) -> list[str]:
    lacking = [name for name in manifest.packages if name not in found]
    other = [
        f"{name} {found[name]} (the cluster {version})"
        for name, version in manifest.packages.items()
        if name in found and version not in ("", found[name])
    ]
    problems = []
    if lacking:
        problems.append(f"this host lacks {', '.join(lacking)}; make the image again (playbooks/image.yml)")
    if other:
        problems.append(f"this host has {', '.join(other)}; make the image again, or update the cluster's packages")
    return problems


def _address_problems(found: set[str], address: str, name: str) -> list[str]:
    if address in found:
        return []
    has = ", ".join(sorted(found - {"127.0.0.1"})) or "none"
    return [f"{name} has {address} in the inventory, this host {has}; give the right --name, or correct base_address"]
