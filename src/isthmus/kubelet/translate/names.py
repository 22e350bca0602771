"""A pod's host name and DNS settings (concepts/services-networking/dns-pod-service)."""

from __future__ import annotations

from isthmus.model.pod_inputs import Object, PodSettings
from isthmus.podproto.plan import Dns, Host

# The kernel's limit of host names, and those of resolv.conf and Kubernetes.
HOSTNAME_MAX = 64
_LABEL_MAX = 63
_NAMESERVERS_MAX = 3
_SEARCHES_MAX = 32


def hostname(pod: Object, settings: PodSettings) -> str:
    """Return the pod's host name."""
    if override := pod["spec"].get("hostnameOverride"):
        return str(override)
    full = fqdn(pod, settings)
    return full if full and pod["spec"].get("setHostnameAsFQDN") else _short(pod)


def fqdn(pod: Object, settings: PodSettings) -> str | None:
    """Return the pod's full name; None without a subdomain."""
    subdomain = pod["spec"].get("subdomain") if not pod["spec"].get("hostnameOverride") else None
    return f"{_short(pod)}.{subdomain}.{_namespace(pod)}.svc.{settings.domain}" if subdomain else None


def hosts(pod: Object) -> tuple[Host, ...]:
    """Return the lines that `hostAliases` adds to /etc/hosts."""
    return tuple(Host(one["ip"], tuple(one.get("hostnames") or ())) for one in pod["spec"].get("hostAliases") or ())


def dns(pod: Object, settings: PodSettings) -> Dns:
    """Return the pod's resolver; without nameservers it is the node's own."""
    spec = pod["spec"]
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    cluster = policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not spec.get("hostNetwork"))
    base = _cluster(pod, settings) if cluster and settings.dns else Dns()
    config = spec.get("dnsConfig") or {}
    options = {_name(option): option for option in base.options}
    for option in config.get("options") or ():
        value = option.get("value")
        options[option["name"]] = option["name"] if value in (None, "") else f"{option['name']}:{value}"
    return Dns(
        _unique(*base.nameservers, *(config.get("nameservers") or ()))[:_NAMESERVERS_MAX],
        _unique(*base.searches, *(config.get("searches") or ()))[:_SEARCHES_MAX],
        tuple(options.values()),
    )


def _cluster(pod: Object, settings: PodSettings) -> Dns:
    domain = settings.domain
    searches = (f"{_namespace(pod)}.svc.{domain}", f"svc.{domain}", domain)
    return Dns((settings.dns,), searches, ("ndots:5",))


def _short(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:_LABEL_MAX].rstrip("-.")


def _namespace(pod: Object) -> str:
    return str(pod["metadata"].get("namespace") or "default")


def _name(option: str) -> str:
    return option.partition(":")[0]


def _unique(*words: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
