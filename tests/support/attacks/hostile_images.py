"""OCI layouts of images that try to write outside the folder they are unpacked into.

It uses nothing but Python's own modules, so that an ordinary user can run it on a node:
`hostile_images.py LAYOUTS TARGET` makes each of WAYS below LAYOUTS, each aimed at the folder TARGET.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

Entry = tuple[str, str, str]
Layers = list[list[Entry]]
TARGET = "TARGET"
RUNSCRIPT = ".singularity.d/runscript"


def link(name: str, to: str) -> Entry:
    """Return a symbolic link."""
    return (name, "link", to)


def file(name: str, text: str = "hostile") -> Entry:
    """Return a file."""
    return (name, "file", text)


_FOLDER = [link("d", TARGET)]
# Way -> its layers; what an entry leads to is below TARGET, in which the file `existing` lies.
WAYS: dict[str, Layers] = {
    # What an unpacker itself must withstand.
    "through a linked folder": [_FOLDER, [file("d/escaped")]],
    "names with ..": [[file("../" * 12 + TARGET + "/escaped")]],
    "absolute names": [[file(TARGET + "/escaped")]],
    "hard link to outside": [[("h", "hard", TARGET + "/existing")], [file("h")]],
    "whiteout through a link": [_FOLDER, [file("d/.wh.existing", "")]],
    "opaque whiteout through a link": [_FOLDER, [file("d/.wh..wh..opq", "")]],
    # What Apptainer 1.4 writes afterwards.
    "the folder .singularity.d": [[link(".singularity.d", TARGET)]],
    "the folder etc": [[link("etc", TARGET)]],
    "runscript": [[link(RUNSCRIPT, TARGET + "/escaped")]],
    "environment": [
        [link(f".singularity.d/env/{name}.sh", f"{TARGET}/{name}") for name in ("10-docker2singularity", "01-base")]
    ],
    "labels": [[link(".singularity.d/labels.json", TARGET + "/escaped")]],
    "hosts and resolv.conf": [
        [link("etc/hosts", TARGET + "/escaped"), link("etc/resolv.conf", TARGET + "/escaped.conf")]
    ],
    "the folder actions": [[link(".singularity.d/actions", TARGET)]],
    "a file that is there": [[link(RUNSCRIPT, TARGET + "/existing")]],
    # The same in other words.
    "a relative link": [[link(RUNSCRIPT, "../" * 12 + TARGET + "/existing")]],
    "a chain of links": [[link("a", TARGET), link("b", "a"), link(RUNSCRIPT, "../b/existing")]],
    "the folder env, in a later layer": [[file(".singularity.d/env/x.sh")], [link(".singularity.d/env", TARGET)]],
    "a file that anybody can open for writing": [[link(RUNSCRIPT, "/dev/null")]],
    "folders where things are mounted": [[link("dev", TARGET), link("var", TARGET), link("home", TARGET)]],
}

# What brings Apptainer's own files as ordinary ones, and has the links of ordinary images.
HONEST: Layers = [
    [
        ("etc", "folder", ""),
        file("etc/hosts", ""),
        file(RUNSCRIPT, "old"),
        link("bin", "usr/bin"),
        file("usr/bin/true", ""),
        link("var/run", "/run"),
        link("etc/mtab", "/proc/mounts"),
        link("etc/localtime", "/usr/share/zoneinfo/UTC"),
        file(".singularity.d/env/90-environment.sh", ""),
        link("environment", ".singularity.d/env/90-environment.sh"),
    ]
]

# Way -> what an OCI archive, a tar of a layout, has before the layout's own files.
ARCHIVES: dict[str, list[Entry]] = {
    "blobs lie elsewhere": [link("blobs", TARGET)],
    "through a linked folder": [link("d", TARGET), file("d/escaped")],
    "names with ..": [file("../" * 12 + TARGET + "/escaped")],
    "absolute names": [file(TARGET + "/escaped")],
    "hard link to outside": [("h", "hard", TARGET + "/existing"), file("h")],
    "the index is a link": [link("index.json", TARGET + "/existing")],
}


def make(layout: Path, layers: Layers, target: str, **config: Any) -> Path:
    """Write a layout with one image; of blobs that have a file already skopeo writes none, and neither does this.

    Args:
        layout: a new folder.
        layers: lowest first.
        target: replaces TARGET.
        config: parts of the image's configuration.
    """
    (layout / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    plain = [_tar(layer, target) for layer in layers]
    unpacked = ["sha256:" + hashlib.sha256(tar).hexdigest() for tar in plain]
    image = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/bin/sh", "-c", "id -un"], **config},
        "rootfs": {"type": "layers", "diff_ids": unpacked},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _blob(layout, "image.config.v1+json", json.dumps(image).encode()),
        "layers": [_blob(layout, "image.layer.v1.tar+gzip", packed(tar)) for tar in plain],
    }
    top = _blob(layout, "image.manifest.v1+json", json.dumps(manifest).encode())
    top["annotations"] = {"org.opencontainers.image.ref.name": "image"}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [top]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return layout


def packed(tar: bytes) -> bytes:
    """Return a layer as a registry has it; equal ones are equal."""
    return gzip.compress(tar, 1, mtime=0)


def manifest(layers: Layers) -> str:
    """Return the manifest of a layout with such an image."""
    with TemporaryDirectory() as folder:
        layout = make(Path(folder), layers, "/none")
        index = json.loads((layout / "index.json").read_text())
        return (layout / "blobs/sha256" / index["manifests"][0]["digest"].partition(":")[2]).read_text()


def copied(folder: Path, layers: Layers, target: str, **config: Any) -> Path:
    """Write what skopeo makes of such an image: blobs by the hex digits of their digests, layers as plain tar."""
    folder.mkdir(parents=True)
    image = json.dumps({"config": {"Cmd": ["/bin/sh"], **config}}).encode()
    described = []
    for content in [image, *(_tar(layer, target) for layer in layers)]:
        digest = hashlib.sha256(content).hexdigest()
        (folder / digest).write_bytes(content)
        described.append({"digest": f"sha256:{digest}", "size": len(content)})
    manifest = {"schemaVersion": 2, "config": described[0], "layers": described[1:]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def archive(path: Path, layout: Path, entries: list[Entry], target: str) -> Path:
    """Write an OCI archive of a layout, with entries before its own."""
    path.write_bytes(_tar(entries, target))
    with tarfile.open(path, "a") as tar:
        for each in sorted(layout.rglob("*")):
            # A folder's own entry would take the place of a link.
            if each.is_file() or not entries:
                tar.add(each, each.relative_to(layout), recursive=False)
    return path


def _tar(entries: list[Entry], target: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, value in entries:
            info = tarfile.TarInfo(_aimed(name, target))
            info.mode = 0o644
            content = b""
            if kind == "file":
                content = value.encode()
                info.size = len(content)
            elif kind == "folder":
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            else:
                info.type = tarfile.SYMTYPE if kind == "link" else tarfile.LNKTYPE
                info.linkname = _aimed(value, target)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _aimed(name: str, target: str) -> str:
    return name.replace(TARGET, target)


def _blob(layout: Path, kind: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    blob = layout / "blobs/sha256" / digest
    if not blob.exists():
        blob.write_bytes(content)
    return {"mediaType": f"application/vnd.oci.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


if __name__ == "__main__":
    for each, what in {**WAYS, "honest": HONEST}.items():
        made = make(Path(sys.argv[1], each.replace(" ", "-")), what, sys.argv[2])
    for each, first in {**ARCHIVES, "honest": []}.items():
        archive(Path(sys.argv[1], each.replace(" ", "-") + ".tar"), made, first, sys.argv[2])
