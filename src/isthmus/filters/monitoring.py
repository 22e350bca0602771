"""Layer monitoring: which hosts Prometheus scrapes, the hash of its password, and who is notified of alerts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

# The password has 40 random characters: more rounds would only cost each scrape.
_ROUNDS = 6
# bcrypt's base64 has another alphabet order than RFC 4648.
_LETTERS = ascii_uppercase + ascii_lowercase + digits
_SALT = str.maketrans(f"{_LETTERS}+/", f"./{_LETTERS}")
# The first of these groups that contains a host is its kind.
_KINDS = ("controller", "login", "compute")
NOBODY = "nobody"


def monitoring_sources(ports: Mapping[str, int]) -> dict[str, str]:
    """Return the endpoints of daemons' metrics on a host's loopback; part -> URL."""
    return {part: f"http://127.0.0.1:{port}/metrics" for part, port in ports.items()}


def monitoring_targets(
    addresses: Iterable[Mapping[str, str]], groups: Mapping[str, Sequence[str]], port: int
) -> list[dict[str, Any]]:
    """Return the hosts for Prometheus' file_sd_configs, each with its name and kind as labels.

    Args:
        addresses: name and address of each, as `base_addresses` gives them.
        groups: the inventory's.
        port: of node exporter.
    """
    return [
        {
            "targets": [f"{host['address']}:{port}"],
            "labels": {"instance": host["name"], "kind": _kind(host["name"], groups)},
        }
        for host in addresses
    ]


def _kind(host: str, groups: Mapping[str, Sequence[str]]) -> str:
    return next((kind for kind in _KINDS if host in groups.get(kind, ())), "other")


def monitoring_password_hash(password: str) -> str:
    """Return bcrypt's hash of a password, whose salt is derived from the password.

    A random salt would change the file and restart daemons; for passwords of such length a fixed one is safe.
    """
    # Imported here: Ansible loads these filters for each playbook, and only one needs it.
    import bcrypt

    salt = b64encode(sha256(f"isthmus monitoring {password}".encode()).digest()[:16]).decode().rstrip("=")
    return bcrypt.hashpw(password.encode(), f"$2b${_ROUNDS:02}${salt.translate(_SALT)}".encode()).decode()


def monitoring_alertmanager(receivers: Sequence[Mapping[str, Any]], route: Mapping[str, Any]) -> dict[str, Any]:
    """Return alertmanager.yml; without receivers alerts are only displayed.

    Args:
        receivers: monitoring_receivers.
        route: monitoring_route, which overrides the default.
    """
    known = [*receivers, *([{"name": NOBODY}] if all(each["name"] != NOBODY for each in receivers) else [])]
    default = {
        "receiver": known[0]["name"],
        "group_by": ["alertname"],
        "group_wait": "5s",
        "group_interval": "1m",
        "repeat_interval": "12h",
    }
    # A host that is down is one notification, not ten.
    quiet = {
        "source_matchers": ['alertname="HostDown"'],
        "target_matchers": ['alertname!="HostDown"'],
        "equal": ["instance"],
    }
    # Behind the site's own routes, which may say otherwise.
    routes = [*route.get("routes", ()), {"matchers": ['severity="info"'], "receiver": NOBODY}]
    return {"route": {**default, **route, "routes": routes}, "receivers": known, "inhibit_rules": [quiet]}


FILTERS: dict[str, Callable[..., object]] = {
    "monitoring_alertmanager": monitoring_alertmanager,
    "monitoring_password_hash": monitoring_password_hash,
    "monitoring_sources": monitoring_sources,
    "monitoring_targets": monitoring_targets,
}
