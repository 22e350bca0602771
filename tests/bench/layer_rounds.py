"""Runs on a submit host: pull an image, then others on the same base, each with a layer of its own, and print JSON.

The others are OCI layouts beside the program: the image's, with one layer more.
"""

import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

OWN_BYTES = 1 << 20


def blob(layout: Path, content: bytes) -> dict[str, Any]:
    """Write a blob; return what describes it."""
    digits = hashlib.sha256(content).hexdigest()
    (layout / "blobs/sha256" / digits).write_bytes(content)
    return {"digest": f"sha256:{digits}", "size": len(content)}


def on_top(below: Path, layout: Path) -> None:
    """Write a layout of an image and one layer more, of content that cannot be compressed."""
    shutil.copytree(below, layout)
    index = json.loads((layout / "index.json").read_text())
    (top,) = index["manifests"]
    manifest = json.loads((layout / "blobs/sha256" / top["digest"].partition(":")[2]).read_text())
    config = json.loads((layout / "blobs/sha256" / manifest["config"]["digest"].partition(":")[2]).read_text())
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        own = tarfile.TarInfo("own")
        own.size = OWN_BYTES
        archive.addfile(own, io.BytesIO(os.urandom(OWN_BYTES)))
    layer = gzip.compress(tar.getvalue(), 1)
    config["rootfs"]["diff_ids"].append(f"sha256:{hashlib.sha256(tar.getvalue()).hexdigest()}")
    manifest["config"].update(blob(layout, json.dumps(config).encode()))
    manifest["layers"].append(blob(layout, layer) | {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"})
    top.update(blob(layout, json.dumps(manifest).encode()))
    (layout / "index.json").write_text(json.dumps(index))


def cpu_s() -> float:
    """Return the CPU time of all children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def written_bytes(before: set[Path], cache: Path) -> int:
    """Return how large the files are that are new in a cache."""
    return sum(path.stat().st_size for path in set(cache.rglob("*")) - before if path.is_file())


def pulled(image: str, cache: Path) -> dict[str, float]:
    """Pull, then start `true`; return what it took."""
    before, cpu, begin = set(cache.rglob("*")), cpu_s(), time.perf_counter()
    path = subprocess.run(["isthmus", "pull", image], check=True, capture_output=True, text=True).stdout.strip()
    there = time.perf_counter()
    reported = {"pull_s": there - begin, "cpu_s": cpu_s() - cpu, "written_mib": written_bytes(before, cache) / 2**20}
    subprocess.run(["apptainer", "--silent", "exec", path, "true"], check=True, stderr=subprocess.DEVNULL)
    return reported | {"start_s": time.perf_counter() - there}


def main() -> None:
    """Take the rounds and the image's name from the command line."""
    rounds, reference = int(sys.argv[1]), sys.argv[2]
    folder, cache = Path("isthmus-bench/layers").absolute(), Path.home() / ".isthmus/images"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    below = folder / "below"
    login = f"--authfile={Path.home() / '.apptainer/docker-config.json'}"
    subprocess.run(["skopeo", "copy", "--quiet", login, f"docker://{reference}", f"oci:{below}:image"], check=True)
    found: dict[str, list[dict[str, float]]] = {"first": [], "base is kept": []}
    for number in range(rounds):
        shutil.rmtree(cache, ignore_errors=True)
        on_top(below, folder / f"{number}")
        found["first"].append(pulled(f"oci:{below}", cache))
        found["base is kept"].append(pulled(f"oci:{folder}/{number}", cache))
        shutil.rmtree(folder / f"{number}")
    shutil.rmtree(folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
