"""CNI plugins, called as the specification 1.1 says (containernetworking/cni, SPEC.md, "Section 2" to "Section 5").

A plugin gets its command from its environment, reads its configuration on standard input and answers on standard
output. The plugins of a list are called one after the other, each with the result of the one before; to take away,
backwards, with the result of the whole. Who calls must keep that result, and must not do two things to one container
at a time. ADD that fails is undone here; DEL may be repeated, and what is gone is no error.

By hand, as the specification's library is one of Go and Python has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any, Protocol

from isthmus.clients.process import Finished, ProcessError, run

# A plugin takes some ms; it may wait for another's lock, or for xtables'.
TIMEOUT_S = 30.0
# SPEC.md, "Error": "Try again later".
_TRY_AGAIN = 11
# SPEC.md, "GC".
_GC_SINCE = (1, 1, 0)


class Verb(StrEnum):
    """The command of a plugin."""

    ADD = "ADD"
    CHECK = "CHECK"
    DEL = "DEL"
    GC = "GC"


class CniError(Exception):
    """An attachment is not as it should be, or could not be made or taken away."""


class ListError(CniError):
    """A list of plugins that cannot be used."""


class AnswerError(CniError):
    """A plugin that could not be started, took too long, or answered something else than the specification has."""


class PluginError(CniError):
    """A plugin that refused.

    Attributes:
        code: below 100 the specification's, else the plugin's own.
        details: what it said besides; may be empty.
    """

    def __init__(self, what: str, code: int, message: str, details: str) -> None:
        super().__init__(f"{what}: {': '.join(filter(None, (message, details)))} (CNI error {code})")
        self.code = code
        self.details = details


class TryAgainError(PluginError):
    """A plugin that refused for now."""


@dataclass(frozen=True, slots=True)
class NetworkList:
    """A network: plugins in the order in which they add to it.

    Attributes:
        name: the network's; plugins keep what they remember under it.
        version: of the specification, as all plugins are spoken to.
        plugins: their configurations.
        disable_check: whether no plugin may be called with CHECK.
        disable_gc: the same for GC.
    """

    name: str
    version: str
    plugins: tuple[Mapping[str, Any], ...]
    disable_check: bool = False
    disable_gc: bool = False

    def written(self) -> dict[str, Any]:
        """Return it as a file has it."""
        return {
            "cniVersion": self.version,
            "name": self.name,
            "disableCheck": self.disable_check,
            "disableGC": self.disable_gc,
            "plugins": [dict(plugin) for plugin in self.plugins],
        }


@dataclass(frozen=True, slots=True)
class Attachment:
    """An interface of a container, which a network is added to.

    Attributes:
        container: a name that no other container on the host has.
        namespace: its network namespace; empty once that is gone.
        interface: the name inside.
    """

    container: str
    namespace: str
    interface: str = "eth0"


@dataclass(frozen=True, slots=True)
class Result:
    """What ADD gave; `raw` is what later calls must be given again."""

    raw: Mapping[str, Any]

    @property
    def addresses(self) -> tuple[tuple[IPv4Interface, IPv4Address | None], ...]:
        """The IPv4 addresses, each with its gateway if it has one.

        Raises:
            AnswerError: the result is not as the specification has it.
        """
        try:
            given = [(str(ip["address"]), ip.get("gateway")) for ip in self.raw.get("ips", ())]
            return tuple(
                (IPv4Interface(address), IPv4Address(gateway) if gateway else None)
                for address, gateway in given
                if ":" not in address
            )
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise AnswerError(f"the plugins' result makes no sense ({error}): {json.dumps(self.raw)}") from error


def parse_list(text: str, where: str) -> NetworkList:
    """Read a list of plugins, a .conflist.

    Raises:
        ListError: it is none; `where` names it.
    """
    try:
        document = json.loads(text)
        plugins = tuple(document["plugins"])
        if not plugins or not all(isinstance(plugin["type"], str) for plugin in plugins):
            raise ValueError("plugins are none, or one has no type")
        disabled = (bool(document.get(key, False)) for key in ("disableCheck", "disableGC"))
        return NetworkList(str(document["name"]), str(document["cniVersion"]), plugins, *disabled)
    except (KeyError, TypeError, ValueError) as error:
        raise ListError(f"{where} is no list of CNI plugins: {error}; run playbooks/network.yml") from error


class Runner(Protocol):
    """Runs a program to its end, as `process.run` does."""

    def __call__(
        self, argv: list[str | Path], *, timeout_s: float, environment: Mapping[str, str], input_text: str
    ) -> Finished:
        """Run it."""


class Plugins:
    """The plugins of a folder.

    Args:
        folder: their programs, each of the name of its type.
        timeout_s: of each call.
        runner: how they are run.
    """

    def __init__(self, folder: Path, timeout_s: float = TIMEOUT_S, runner: Runner = run) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        self._run = runner

    def add(self, network: NetworkList, to: Attachment) -> Result:
        """Add a network; what a failure leaves half made is taken away again.

        Raises:
            CniError: in one of its kinds.
        """
        raw: Mapping[str, Any] = {}
        try:
            for plugin in network.plugins:
                raw = self._answer(Verb.ADD, network, plugin, to, raw)
        except CniError as error:
            try:
                self.delete(network, to)
            except CniError as second:
                error.add_note(f"nor could it be undone: {second}")
            raise
        return Result(raw)

    def check(self, network: NetworkList, to: Attachment, result: Result) -> None:
        """Ask whether all is as ADD left it.

        Raises:
            CniError: it is not, or a plugin failed.
        """
        if not network.disable_check:
            for plugin in network.plugins:
                self._call(Verb.CHECK, network, plugin, to, result.raw)

    def delete(self, network: NetworkList, to: Attachment, result: Result | None = None) -> None:
        """Take a network away.

        Args:
            network: as it was added.
            to: as it was added to; without a namespace where that is gone.
            result: of ADD; None where nobody knows it.

        Raises:
            CniError: something is left; try again.
        """
        for plugin in reversed(network.plugins):
            self._call(Verb.DEL, network, plugin, to, result.raw if result else {})

    def collect(self, network: NetworkList, valid: Iterable[Attachment]) -> None:
        """Have plugins give back what belongs to no attachment that is there; those before CNI 1.1 know no such call.

        Raises:
            CniError: a plugin refused.
        """
        if network.disable_gc or tuple(map(int, network.version.split("."))) < _GC_SINCE:
            return
        known = [{"containerID": each.container, "ifname": each.interface} for each in valid]
        for plugin in network.plugins:
            given = {**plugin, "cni.dev/valid-attachments": known}
            self._call(Verb.GC, network, given, Attachment("", "", ""), {})

    def _answer(
        self, verb: Verb, network: NetworkList, plugin: Mapping[str, Any], to: Attachment, before: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        document = self._call(verb, network, plugin, to, before)
        answer = _object(document)
        if answer is None:
            raise AnswerError(
                f"CNI plugin {plugin['type']}: {verb} {to.container} answered no JSON object: {document!r}"
            )
        return answer

    def _call(
        self, verb: Verb, network: NetworkList, plugin: Mapping[str, Any], to: Attachment, before: Mapping[str, Any]
    ) -> str:
        given = {**plugin, "cniVersion": network.version, "name": network.name}
        if before:
            given["prevResult"] = before
        try:
            return self._run(
                [self._folder / plugin["type"]],
                timeout_s=self._timeout_s,
                environment=dict(self._environment(verb, to)),
                input_text=json.dumps(given),
            ).stdout
        except ProcessError as error:
            raise _refusal(f"CNI plugin {plugin['type']}: {verb} {to.container}", error) from error

    def _environment(self, verb: Verb, to: Attachment) -> Iterator[tuple[str, str]]:
        yield "CNI_COMMAND", verb
        if verb is not Verb.GC:
            yield "CNI_CONTAINERID", to.container
            yield "CNI_NETNS", to.namespace
            yield "CNI_IFNAME", to.interface
        yield "CNI_PATH", str(self._folder)
        # Else one that the daemon was started with would be the plugin's.
        yield "CNI_ARGS", ""


def _refusal(what: str, error: ProcessError) -> CniError:
    document = _object(error.stdout)
    if document is None or not isinstance(document.get("code"), int):
        return AnswerError(f"{what}: {error}")
    kind = TryAgainError if document["code"] == _TRY_AGAIN else PluginError
    return kind(what, document["code"], str(document.get("msg", "")), str(document.get("details", "")))


def _object(text: str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
