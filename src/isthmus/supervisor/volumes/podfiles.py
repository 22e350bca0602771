"""The pod's /etc/hosts and /etc/resolv.conf, as the kubelet of a usual cluster writes them."""

from __future__ import annotations

from pathlib import Path

from isthmus.podproto.plan import Plan


def hosts(plan: Plan, addresses: list[str]) -> str:
    """Return /etc/hosts: the loopback and the pod itself, or what the host has, and what the pod adds.

    The first line is by what programs, Kubernetes' own tests among them, know who wrote it.
    """
    if plan.host_network:
        lines = ["# Kubernetes-managed hosts file (host network).", *_of_host()]
    else:
        own = "\t".join(filter(None, (plan.fqdn, plan.hostname)))
        lines = [
            "# Kubernetes-managed hosts file.",
            "127.0.0.1\tlocalhost",
            "::1\tlocalhost ip6-localhost ip6-loopback",
        ]
        lines += [f"{address}\t{own}" for address in addresses]
    lines += ["\t".join([host.address, *host.names]) for host in plan.hosts]
    return "\n".join([*lines, ""])


def _of_host() -> list[str]:
    try:
        return Path("/etc/hosts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ["127.0.0.1\tlocalhost"]


def resolv(plan: Plan) -> str:
    """Return /etc/resolv.conf; without nameservers the node's own."""
    dns = plan.dns
    if not dns.nameservers:
        try:
            return Path("/etc/resolv.conf").read_text(encoding="utf-8")
        except OSError:
            return ""
    lines = [f"nameserver {address}" for address in dns.nameservers]
    lists = {"search": dns.searches, "options": dns.options}
    lines += [f"{key} {' '.join(words)}" for key, words in lists.items() if words]
    return "\n".join([*lines, ""])
