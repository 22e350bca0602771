"""Layer network: requirements of a host, the plugin's key in the cache, and its arguments in plugstack.conf."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.network.interfaces import host_interfaces, interface_overlap
from isthmus.filters.suggest import unknown
from isthmus.filters.validate.layers.network import MTU_MIN
from isthmus.model.network import Driver
from isthmus.model.networks.wireguard import OVERHEAD
from isthmus.model.node_network import LEG, VXLAN_OVERHEAD

# In the output of `isthmus network status`: slurmd has the plugin, or there is no slurmd.
_LOADED = re.compile(r"plugin.: .(loaded|no slurmd)")
# First process of a job's PID namespace.
INIT = "/usr/lib/isthmus/isthmus_init"
# Hex digits of a key: enough that no two builds share one.
_KEY_DIGITS = 16


def network_host_problems(
    facts: Mapping[str, Any], address: str, pod_range: str, mtu: int, encrypts: bool = False
) -> list[str]:
    """Return why a host cannot be a member of pod networks.

    Args:
        facts: Ansible's, of its interfaces.
        address: the host's on the cluster's network.
        pod_range: all addresses of pods, CIDR.
        mtu: desired for pods, 0 for what the host carries.
        encrypts: whether packets between hosts are encrypted, and longer.
    """
    pods = IPv4Network(pod_range)
    found = host_interfaces(facts)
    # The daemon's own interfaces are named after their network's number, and lie in the range.
    problems = [
        interface_overlap(each, pods, "network_pod_range")
        for each in found
        if not str(each.get("device", "")).startswith(LEG)
    ]
    carrying = [each for each in found if (each.get("ipv4") or {}).get("address") == address]
    if not carrying:
        problems.append(f"no interface has {address}; set base_address to the host's address on the cluster's network")
    for each in carrying:
        room = int(each["mtu"]) - VXLAN_OVERHEAD - (OVERHEAD if encrypts else 0)
        if room < max(mtu, MTU_MIN):
            problems.append(
                f"{each['device']} carries {each['mtu']} bytes, {room} for a pod, and"
                f" {max(mtu, MTU_MIN)} are wanted; lower network_mtu, or raise the interface's"
            )
    return [problem for problem in problems if problem]


def network_prolog_problem(config: str, drivers: Iterable[str]) -> str:
    """Return why jobs without --pod-network cannot have one by default; empty when they can, or need not.

    Args:
        config: the output of `scontrol show config`; empty when Slurm did not answer.
        drivers: defaults of jobs without the option.
    """
    flags = re.search(r"^PrologFlags\s*=\s*(.*?)\s*$", config, re.MULTILINE)
    asked = sorted({*drivers} - {Driver.NONE})
    # Contain implies Alloc (slurm.conf(5)).
    if not flags or not asked or {"alloc", "contain"} & {*flags[1].lower().split(",")}:
        return ""
    return (
        f"PrologFlags is {flags[1]}, and jobs that say nothing get network {', '.join(asked)}: it must be there before"
        " their first step; set PrologFlags=Contain in slurm.conf (slurm_conf_extra, where slurm_manage is true),"
        " or network_default_driver: none"
    )


def network_spank_problem(config: str, *, pid_namespace: bool) -> str:
    """Return why tasks cannot have a PID namespace; empty when they can, or need not.

    Args:
        config: the output of `scontrol show config`; empty when Slurm did not answer.
        pid_namespace: whether they should.
    """
    parameters = re.search(r"^SlurmdParameters\s*=\s*(.*?)\s*$", config, re.MULTILINE)
    if not pid_namespace or not parameters or "contain_spank" not in parameters[1].lower():
        return ""
    return (
        "network_pid_namespace is true, and SlurmdParameters has contain_spank: plugins then run in processes of their"
        " own, and cannot move tasks; take it out of slurm.conf, or set network_pid_namespace: false"
    )


def network_plugin_key(folder: str, slurm: str, release: str) -> str:
    """Return the key of the plugin built from a folder against a Slurm on a release of the distribution.

    Raises:
        InputError: there is no source.
    """
    files = sorted(path for pattern in ("*.c", "*.h", "Makefile") for path in Path(folder).rglob(pattern))
    if not files:
        raise InputError(f"{folder} has no source of the SPANK plugin", "run from a whole checkout of Isthmus")
    digest = sha256(f"{slurm}\n{release}\n".encode())
    for path in files:
        digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:_KEY_DIGITS]


def network_plugin_slurms(hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return each Slurm that hosts have, once, as `sinfo --version` prints; a host without Slurm is left out."""
    return list(dict.fromkeys(version for host in hosts if (version := hostvars[host]["__network_state"]["slurm"])))


def network_plugin_words(
    default: str,
    partitions: Mapping[str, str],
    users: Mapping[str, str],
    timeout_s: int,
    prefix: str,
    pid_namespace: bool,
) -> list[str]:
    """Return the plugin's arguments in plugstack.conf.

    Args:
        default: network of jobs that say nothing.
        partitions: partition -> the same for its jobs.
        users: user -> the same for theirs.
        timeout_s: how long a job waits for its network.
        prefix: of the nodes' programs.
        pid_namespace: whether a job with a network has a PID namespace, too.
    """
    rules = [
        f"{kind}={name}:{given[name]}"
        for kind, given in (("partition", partitions), ("user", users))
        for name in sorted(given)
    ]
    init = [f"init={INIT}"] if pid_namespace else []
    command = f"command={prefix}/bin/isthmus-step-container"
    return [f"default={default}", f"timeout_s={timeout_s}", command, *init, *rules]


def network_plugin_is_due(
    hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], files: Iterable[str]
) -> bool:
    """Return whether slurmd must be reconfigured: a host's slurmd lacks the plugin, or one of its files changed.

    Args:
        hosts: of this run.
        hostvars: with what the role's tasks have registered.
        files: the plugin, and its line in plugstack.conf.
    """
    read = {*files}
    return any(_plugin_is_due(hostvars[host], read) for host in hosts)


def _plugin_is_due(facts: Mapping[str, Any], files: set[str]) -> bool:
    changed = {
        path for name in ("__network_copied", "__network_files") for path in facts.get(name, {}).get("paths", ())
    }
    return bool(changed & files) or not _LOADED.search(facts["__network_state"]["status"])


def network_copies(programs: Mapping[str, Mapping[str, str]], places: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the entries of host_copies for programs; one that was not obtained, in check mode, is left out.

    Args:
        programs: name -> `path` on the deployer.
        places: path on the host -> name.
    """
    return [
        {"src": programs[name]["path"], "dest": place, "mode": "0755"}
        for place, name in places.items()
        if name in programs
    ]


def network_built_copies(built: Sequence[str], folder: str, places: Sequence[str]) -> list[dict[str, str]]:
    """Return the entries of host_copies for what was built from src/spank.

    Args:
        built: file names.
        folder: of the files on the deployer.
        places: path of each on the host.
    """
    return [
        {"src": f"{folder}/{name}", "dest": place, "mode": "0755"} for name, place in zip(built, places, strict=True)
    ]


def network_session_rules(kind: str, exempt: Sequence[str]) -> str:
    """Return the last lines of /etc/pam.d/sshd, which move sessions into pods.

    Args:
        kind: `login` or `job`, the argument of pam_isthmus.
        exempt: conditions of pam_succeed_if(8) for sessions that stay on the host.
    """
    lines = []
    for phase in ("account", "session"):
        # Each skips those after it, and the module.
        lines += [
            f"{phase} [success={len(exempt) - number} default=ignore] pam_succeed_if.so quiet {condition}"
            for number, condition in enumerate(exempt)
        ]
        lines.append(f"{phase} required /usr/lib/isthmus/pam_isthmus.so {kind}")
    return "".join(f"{line}\n" for line in lines)


def network_cni_places(programs: Iterable[str], folder: str) -> dict[str, str]:
    """Return path of each CNI plugin -> its program's name, which starts with cni-."""
    return {f"{folder}/{name.removeprefix('cni-')}": name for name in programs}


def network_rules(
    egress: Iterable[Mapping[str, Any]], users: Iterable[Mapping[str, Any]], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of the daemon's packet filter, with uids for names.

    Args:
        egress: network_egress; a rule for several users becomes one for each.
        users: base_users.
        given: `admins` (names), `slurm` (ports), `services`, `hosts` (addresses), `servers` (of homes, getent(1)'s
            output), `bounds` and `default`.

    Raises:
        InputError: an unknown user.
    """
    uids = {str(user["name"]): int(user["uid"]) for user in users}
    return {
        "admins": sorted(_uid(name, uids) for name in given["admins"]),
        "slurm": [port for port in given["slurm"] if port],
        "services": [
            {"protocol": each.get("protocol", "tcp"), "port": str(each["port"])} for each in given["services"]
        ],
        "hosts": sorted({f"{address}/32" for address in given["hosts"]}),
        "servers": _addresses(given["servers"]),
        "bounds": {name: int(value) for name, value in given["bounds"].items()},
        "egress": [_rule(rule, uid) for rule in egress for uid in _uids(rule, uids)],
        "default": given["default"],
    }


def _addresses(output: str) -> list[str]:
    """Return the IPv4 addresses in getent(1)'s output; pods have no IPv6."""
    found = {line.split()[0] for line in output.splitlines() if line.strip()}
    return sorted(f"{address}/32" for address in found if ":" not in address)


def _rule(rule: Mapping[str, Any], uid: int | None) -> dict[str, Any]:
    return {
        "action": rule["action"],
        "to": rule.get("to", "0.0.0.0/0"),
        "protocol": rule.get("protocol", "any"),
        "ports": [str(port) for port in rule.get("ports") or ()],
        "uid": uid,
    }


def _uids(rule: Mapping[str, Any], uids: Mapping[str, int]) -> list[int | None]:
    names = rule.get("users") or ()
    return [_uid(name, uids) for name in names] if names else [None]


def _uid(name: str, uids: Mapping[str, int]) -> int:
    if name not in uids:
        raise unknown("user in a network rule", name, uids)
    return uids[name]


FILTERS: dict[str, Callable[..., object]] = {
    "network_built_copies": network_built_copies,
    "network_cni_places": network_cni_places,
    "network_copies": network_copies,
    "network_host_problems": network_host_problems,
    "network_plugin_is_due": network_plugin_is_due,
    "network_prolog_problem": network_prolog_problem,
    "network_plugin_key": network_plugin_key,
    "network_plugin_slurms": network_plugin_slurms,
    "network_plugin_words": network_plugin_words,
    "network_rules": network_rules,
    "network_session_rules": network_session_rules,
    "network_spank_problem": network_spank_problem,
}
