"""Probes and hooks, with their ports as numbers."""

from __future__ import annotations

from isthmus.model.pod_inputs import Object
from isthmus.podproto.plan import Action, ActionKind, Probe


def probe(container: Object, kind: str) -> Probe | None:
    """Return a container's `startupProbe`, `livenessProbe` or `readinessProbe`; None without one."""
    text = container.get(kind)
    if not text:
        return None
    found = action(container, text)
    if found is None:
        return None
    return Probe(
        found,
        initial_delay_s=text.get("initialDelaySeconds") or 0,
        period_s=text.get("periodSeconds") or 10,
        timeout_s=text.get("timeoutSeconds") or 1,
        success=text.get("successThreshold") or 1,
        failure=text.get("failureThreshold") or 3,
        grace_s=text.get("terminationGracePeriodSeconds"),
    )


def hook(container: Object, kind: str) -> Action | None:
    """Return a container's `postStart` or `preStop`; None without one."""
    text = (container.get("lifecycle") or {}).get(kind)
    return action(container, text) if text else None


def action(container: Object, text: Object) -> Action | None:
    """Return what a probe or hook does; None when it says nothing."""
    if text.get("exec"):
        return Action(ActionKind.EXEC, argv=tuple(text["exec"].get("command") or ()))
    if http := text.get("httpGet"):
        headers = tuple((one["name"], one.get("value", "")) for one in http.get("httpHeaders") or ())
        path = http.get("path") or "/"
        return Action(
            ActionKind.HTTP,
            port=port_number(container, http["port"]),
            host=http.get("host") or None,
            path=path if path.startswith("/") else f"/{path}",
            scheme=(http.get("scheme") or "HTTP").lower(),
            headers=headers,
        )
    if tcp := text.get("tcpSocket"):
        return Action(ActionKind.TCP, port=port_number(container, tcp["port"]), host=tcp.get("host") or None)
    if grpc := text.get("grpc"):
        return Action(ActionKind.GRPC, port=int(grpc["port"]), service=grpc.get("service") or "")
    if (sleep := text.get("sleep")) is not None:
        return Action(ActionKind.SLEEP, seconds=sleep.get("seconds") or 0)
    return None


def port_number(container: Object, port: int | str) -> int | None:
    """Return a port's number; None when the container has no port of that name."""
    if str(port).isdigit():
        return int(port)
    ports = container.get("ports") or ()
    return next((one["containerPort"] for one in ports if one.get("name") == port), None)
