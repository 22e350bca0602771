"""A bundle: one tar archive with the project's tree and everything that a site would download.

    manifest.json     the bundle's version, and the sha256 of every file in it; the archive's first member
    isthmus.tar       the project's tree
    programs/         third-party programs and their programs.json: a mirror for the role `artifacts`
    wheels/           Python packages of deployer and nodes
    packages.tar      Debian packages of the nodes, with an index for apt; extracted beside itself as packages/
    images/           container images as OCI archives

Runs as a script too, with the standard library alone: a deployer without internet has no venv before it is unpacked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

SCHEMA = 1
MANIFEST = "manifest.json"
PACKAGES = "packages.tar"
# Files that decide what is downloaded: a bundle fits all trees that agree in these.
WANTED = ("artifacts.yml", "locks/build.txt", "locks/deployer.txt", "locks/runtime.txt")
ROOT = Path(__file__).parents[3]


class BundleError(Exception):
    """A bundle that cannot be made or used; the message names the file and the remedy."""


def wanted(root: Path) -> str:
    """Return a hash of what this tree downloads."""
    texts = [(root / name).read_text(encoding="utf-8") for name in WANTED]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def pack(folder: Path, bundle: Path, root: Path = ROOT) -> None:
    """Make a bundle of a folder; it gets its name when it is complete."""
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    sums = {name: _digest(folder / name) for name in files if name != MANIFEST}
    manifest = {"schema": SCHEMA, "wanted": wanted(root), "files": sums}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    part = bundle.with_name(f".{bundle.name}.part")
    try:
        with part.open("wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                for name in [MANIFEST, *sums]:
                    tar.add(folder / name, name, filter=_anonymous)
            file.flush()
            os.fsync(file.fileno())
        part.replace(bundle)
    finally:
        part.unlink(missing_ok=True)


def unpack(bundle: Path, cache: Path, root: Path = ROOT) -> Path:
    """Verify a bundle and extract it, once; return the folder.

    Raises:
        BundleError: it is no bundle, is of another version of the project, or was modified.
    """
    try:
        with tarfile.open(bundle) as tar:
            first = tar.next()
            text = tar.extractfile(first).read() if first and first.name == MANIFEST else b""  # type: ignore[union-attr]
            manifest = json.loads(text)
            schema, fits, sums = manifest["schema"], manifest["wanted"] == wanted(root), manifest["files"]
            if schema != SCHEMA or not fits:
                raise BundleError(f"{bundle} is of another version of Isthmus; make one with `make bundle` of this one")
            folder = cache / hashlib.sha256(text).hexdigest()[:16]
            if not folder.exists():
                _lay_out(tar, sums, folder, bundle)
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{bundle} is no bundle: {error}; make one with `make bundle`") from error
    return folder


def _lay_out(tar: tarfile.TarFile, sums: dict[str, str], folder: Path, bundle: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        _extract(tar, sums, work)
        for name, expected in sums.items():
            found = _digest(work / name) if (work / name).is_file() else "no file"
            if found != expected:
                raise BundleError(f"{bundle}: {name}: sha256 is {found}, expected {expected}; copy the bundle again")
        if PACKAGES in sums:
            with tarfile.open(work / PACKAGES) as packages:
                _extract(packages, None, work / "packages")
        work.chmod(0o755)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _extract(tar: tarfile.TarFile, sums: dict[str, str] | None, work: Path) -> None:
    """Extract those files of an archive that are in `sums`; Python before 3.11.4 has no extraction filter."""
    for info in tar:
        if info.name == MANIFEST or info.isdir():
            continue
        path = (work / info.name).resolve()
        content = tar.extractfile(info) if info.isreg() else None
        if content is None or (sums is not None and info.name not in sums) or work.resolve() not in path.parents:
            raise ValueError(f"{info.name} is not in the manifest")
        path.parent.mkdir(parents=True, exist_ok=True)
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = 0
    return info


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Pack or unpack from the command line; unpack prints the folder."""
    parser = argparse.ArgumentParser(description="Make or extract a bundle of everything that a site would download.")
    parser.add_argument("verb", choices=["pack", "unpack"])
    parser.add_argument("source", type=Path, help="pack: the folder; unpack: the bundle")
    parser.add_argument("target", type=Path, help="pack: the bundle; unpack: the folder of extracted bundles")
    options = parser.parse_args()
    try:
        if options.verb == "pack":
            pack(options.source, options.target)
        else:
            print(unpack(options.source, options.target))
    except BundleError as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
