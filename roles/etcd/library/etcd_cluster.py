"""The module `etcd_cluster`: waits until the members are one cluster, before, between and after their upgrades.

The members are asked one by one, so that one which does not answer is named. etcd goes back by one minor release only
when that was enabled beforehand: members then write nothing that the older release cannot read, and the older one
refuses to start before their storage has its version. What is there is asked each time and nothing is stored, so a run
that was killed goes on. etcd ends the way back by itself, some seconds after the last member has the older release.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

# Log entries that a member may be behind another while both are asked, one after the other.
BEHIND = 1000
INTERVAL_S = 0.5


class Phase(StrEnum):
    """When the module is called."""

    BEFORE = "before"
    BETWEEN = "between"
    AFTER = "after"


WHEN = {Phase.BEFORE: "before its upgrade", Phase.BETWEEN: "after a member's restart", Phase.AFTER: "after its upgrade"}


class Member(NamedTuple):
    """What a member says of itself; releases as 3.6, "" where it has none."""

    version: str
    storage: str
    leader: str
    applied: int
    goes_back_to: str
    errors: tuple[str, ...]


class Request(NamedTuple):
    """What is waited for: which members run `version` depends on the phase; `name` is the one that was upgraded."""

    version: str
    phase: Phase
    name: str


def release(version: str) -> str:
    """Return 3.6 of 3.6.14."""
    return ".".join(version.split(".")[:2])


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a release; none of ""."""
    return tuple(int(word) for word in release(version).split(".") if word)


def read(printed: str, members: Mapping[str, str]) -> dict[str, Member]:
    """Parse `etcdctl endpoint status --write-out=json`; members: name -> URL. Those that did not answer are missing."""
    try:
        statuses = {row["Endpoint"]: row["Status"] for row in json.loads(printed or "[]")}
    except (ValueError, KeyError, TypeError):
        statuses = {}
    return {name: _member(statuses[url]) for name, url in members.items() if url in statuses}


def _member(status: Mapping[str, Any]) -> Member:
    back = status.get("downgradeInfo") or {}
    return Member(
        status["version"],
        release(status.get("storageVersion", "")),
        str(status.get("leader") or ""),
        int(status.get("raftAppliedIndex", 0)),
        release(back.get("targetVersion", "")) if back.get("enabled") else "",
        tuple(status.get("errors") or ()),
    )


def problems(seen: Mapping[str, Member], names: Mapping[str, Any], request: Request) -> Iterator[str]:
    """Say why the members are not yet what the phase wants; nothing when they are."""
    newest = max((each.applied for each in seen.values()), default=0)
    for name in names:
        each = seen.get(name)
        if each is None:
            yield f"{name} does not answer"
            continue
        if not each.leader:
            yield f"{name} knows no leader"
        if newest - each.applied > BEHIND:
            yield f"{name} is {newest - each.applied} changes behind"
        yield from (f"{name}: {error}" for error in each.errors)
        is_due = request.phase is Phase.AFTER or (request.phase is Phase.BETWEEN and name == request.name)
        if is_due and each.version != request.version:
            yield f"{name} runs {each.version} and not {request.version}"
        if request.phase is Phase.AFTER:
            yield from _unfinished(name, each, release(request.version))
    if len({each.leader for each in seen.values() if each.leader}) > 1:
        yield "members follow different leaders"


def _unfinished(name: str, member: Member, wanted: str) -> Iterator[str]:
    if member.goes_back_to:
        yield f"{name} still goes back to {member.goes_back_to}"
    # A member follows when all have the release; before 3.6 it does not say so.
    if member.storage not in ("", wanted):
        yield f"the storage of {name} is still that of {member.storage}"


def action(seen: Mapping[str, Member], version: str) -> list[str]:
    """Return the words of `etcdctl downgrade` that are due before members of a version start; none for nothing."""
    wanted, present = numbers(version), [numbers(each.version) for each in seen.values()]
    towards = next((each.goes_back_to for each in seen.values() if each.goes_back_to), "")
    if wanted < max(present):
        # Members of both releases without a way back are an upgrade that was cut: the older may still come back.
        is_due = wanted < min(present) or bool(unreadable(seen, version))
        return ["enable", release(version)] if is_due and towards != release(version) else []
    # Somebody who began to go back wants the newer release again.
    return ["cancel"] if towards and numbers(towards) < wanted else []


def unreadable(seen: Mapping[str, Member], version: str) -> list[str]:
    """Name the members whose storage an older version could not read yet."""
    newer = {name: each.storage for name, each in seen.items() if numbers(each.storage) > numbers(version)}
    return [f"the storage of {name} is still that of {storage}" for name, storage in newer.items()]


def last(text: str) -> str:
    """Return the last line, where etcdctl says what went wrong; those above are of its library."""
    return text.strip().rpartition("\n")[2]


class Cluster:
    """All members, asked by the one on this host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.members: dict[str, str] = module.params["members"]
        self.request = Request(module.params["version"], Phase(module.params["phase"]), module.params["name"])
        self.error = ""
        self.end = time.monotonic() + module.params["timeout_s"]

    def see(self) -> dict[str, Member]:
        """Ask each member; one that hangs takes its five seconds."""
        _, printed, error = self._etcdctl("endpoint", "status", "--write-out=json")
        self.error = last(error)
        return read(printed, self.members)

    def prepare(self, seen: Mapping[str, Member]) -> list[str]:
        """Let the cluster go back, or no longer; wait until older members can read what is stored."""
        done: list[str] = []
        while words := action(seen, self.request.version):
            if self.module.check_mode:
                return words
            code, out, error = self._etcdctl("downgrade", *words)
            if not code:
                done = words
                break
            # etcd's own version follows its members' in some seconds, and it refuses until then. Or another was first.
            self._pause(f"etcdctl downgrade {' '.join(words)}: {last(error or out)}")
            seen = self.agree()
        self._wait(lambda: unreadable(self.see(), self.request.version))
        return done

    def agree(self) -> dict[str, Member]:
        """Wait until the members are what the phase wants."""
        seen: dict[str, Member] = {}

        def lacking() -> list[str]:
            seen.clear()
            seen.update(self.see())
            # Where nobody answers, the reason may be here: a password, a certificate.
            return [*problems(seen, self.members, self.request), *([self.error] if self.error and not seen else [])]

        self._wait(lacking)
        return seen

    def _wait(self, lacking: Callable[[], list[str]]) -> None:
        while found := lacking():
            self._pause("; ".join(found))

    def _pause(self, why: str) -> None:
        if time.monotonic() > self.end:
            self._fail(why)
        time.sleep(INTERVAL_S)

    def _etcdctl(self, *words: str) -> tuple[int, str, str]:
        asked = {"ETCDCTL_ENDPOINTS": ",".join(self.members.values())}
        return self.module.run_command([*self.module.params["etcdctl"], *words], environ_update=asked)

    def _fail(self, why: str) -> None:
        self.module.fail_json(
            msg=f"etcd {WHEN[self.request.phase]}: {why}; see `journalctl -u isthmus-etcd` on the hosts of"
            " group etcd, and run this again when all members answer. No further member is changed"
        )


def main() -> None:
    """Wait, and in phase `before` choose the direction."""
    options = {
        "members": {"type": "dict", "required": True},
        "version": {"type": "str", "required": True},
        "phase": {"type": "str", "choices": [each.value for each in Phase], "required": True},
        "name": {"type": "str", "default": ""},
        "etcdctl": {"type": "list", "elements": "str", "default": ["/usr/local/sbin/isthmus-etcdctl"]},
        "timeout_s": {"type": "int", "default": 120},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    cluster = Cluster(module)
    # A check run changes no member, so there is nothing to wait for afterwards.
    if module.check_mode and cluster.request.phase is not Phase.BEFORE:
        module.exit_json(changed=False, done=[])
    seen = cluster.agree()
    done = cluster.prepare(seen) if cluster.request.phase is Phase.BEFORE else []
    module.exit_json(changed=bool(done), done=done)


if __name__ == "__main__":
    main()
