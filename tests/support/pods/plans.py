"""Builders of pods' plans as a supervisor gets them: each with the usual value of every field."""

from __future__ import annotations

from typing import Any

_NO_ACTION: dict[str, Any] = {"argv": [], "port": None, "host": None, "path": "/", "scheme": "http", "headers": []}


def action(kind: str, **rest: Any) -> dict[str, Any]:
    return {"kind": kind, **_NO_ACTION, "service": "", "seconds": 0, **rest}


def probe(kind: str, **rest: Any) -> dict[str, Any]:
    usual = {"initial_delay_s": 0, "period_s": 1, "timeout_s": 1, "success": 1, "failure": 1, "grace_s": None}
    return {**action(kind), **usual, **rest}


def container(name: str, script: str, **rest: Any) -> dict[str, Any]:
    return {
        **{"name": name, "image": "", "image_id": f"{name}@sha256:0", "argv": ["sh", "-c", script], "env": []},
        **{"cwd": None, "user": None, "read_only": False, "tty": False, "stdin": False, "stdin_once": False},
        **{"mounts": [], "startup": None, "liveness": None, "readiness": None, "post_start": None, "pre_stop": None},
        **{"termination_path": "/dev/termination-log", "termination_policy": "File", "sidecar": False},
        **{
            "memory_mib": None,
            "mpi": False,
            "mpi_flags": [],
            "capabilities": {"add": [], "drop": []},
            "escalates": True,
            "seccomp": None,
        },
        **rest,
    }


def volume(name: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "size_bytes": None,
        "path": None,
        "host_type": "",
        "files": [],
        "gid": None,
        **rest,
    }


def mount(name: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"volume": name, "path": path, "sub_path": None, "read_only": False, **rest}


def plan(*containers: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {
        **{
            "schema": 1,
            "uid": "u-1",
            "namespace": "default",
            "name": "web",
            "hostname": "web-0",
            "fqdn": None,
            "host_network": False,
        },
        **{"share_pid": False, "restart_policy": "Never", "grace_s": 5, "hosts": [], "volumes": [], "init": []},
        "dns": {"nameservers": ["10.96.0.10"], "searches": ["default.svc.cluster.local"], "options": ["ndots:5"]},
        "containers": list(containers),
        **rest,
    }
