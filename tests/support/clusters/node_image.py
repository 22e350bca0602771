"""A node of the local test bed that is made from the image with the nodes' own programs, and nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from isthmus.filters.trust.identity import base_program_key
from tests.support.clusters.cluster import BIN, ROOT

TAG = "localhost/isthmus-node:joins"
_PARTS = ROOT / "roles/image/files"
# All that makes a node, and what runs there; whole files, by their hashes.
LOOK = r"""
set -- /etc /usr/lib/isthmus /usr/local /opt/isthmus -xdev ! -name '*.pyc' ! -name __pycache__
find /var/lib/slurm /var/log/slurm "$@" -printf '%p %u:%g %m %y %l\n'
find "$@" -type f ! -name network.json -exec sha256sum {} +
systemctl list-unit-files --no-legend
systemctl show --property=Id,ActiveState munge slurmd isthmus-networkd isthmus-dns systemd-logind | paste -sd ' '
sysctl net.ipv4.ip_forward
"""


def podman(*arguments: object, check: bool = True) -> str:
    """Run podman; return what it prints."""
    command = ("podman", *map(str, arguments))
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout.strip()


def inspect(node: Any) -> dict[str, Any]:
    """How a node's container was made."""
    return json.loads(podman("inspect", f"{node.variables['name']}-{node.name}"))[0]


def make(like: dict[str, Any], folder: Path) -> str:
    """Add the programs to a test bed's image, by the script that playbooks/image.yml uses."""
    wheel = (BIN / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    subprocess.run([*wheel, "--wheel-dir", folder, ROOT], check=True)
    (built,) = folder.glob("*.whl")
    words = (
        "/program.sh",
        "/",
        f"/wheel/{built.name}",
        "/isthmus-join.service",
        "/opt/isthmus",
        base_program_key(str(ROOT)),
    )
    mounts = [f"{folder}:/wheel:ro", *(f"{path}:/{path.name}:ro" for path in _PARTS.glob("*[mn].s[eh]*"))]
    volumes = [word for mount in mounts for word in ("--volume", mount)]
    started = like["Config"]["CreateCommand"]
    engine = started[started.index("--shm-size") + 2 : -2]
    engine = [word for place, word in enumerate(engine) if "--volume" not in engine[max(place - 1, 0) : place + 1]]
    options = ("--privileged", "--network=none", *volumes, *engine, "--entrypoint=sh")
    made = podman("create", *options, like["ImageName"], *words)
    podman("start", "--attach", made)
    podman("commit", "--quiet", "--change=ENTRYPOINT []", made, TAG)
    podman("rm", made)
    return TAG


def start(like: dict[str, Any], image: str, node: Any, given: str, folder: Path) -> str:
    """Start a container as another was, as another node, with what lets it join; return its name."""
    old, cluster = like["Config"]["Hostname"], node.variables["name"]
    words = [word.replace(f"/{old}", f"/{node.name}") for word in like["Config"]["CreateCommand"][2:-2]]
    words = _without_keys(words) if not Path(node.variables["state_dir"], "ssh", node.name).exists() else words
    for option, value in (
        ("--network", f"{cluster}:ip={node.variables['base_address']}"),
        ("--name", f"{cluster}-{node.name}"),
        ("--hostname", node.name),
    ):
        words[words.index(option) + 1] = value
    (folder / "isthmus").mkdir(mode=0o755)
    (folder / "isthmus/join").write_text(given)
    (folder / "isthmus/join").chmod(0o600)
    name = f"{cluster}-{node.name}"
    podman("create", *(word for word in words if word != "--detach"), image, "/sbin/init")
    podman("cp", folder / "isthmus", f"{name}:/etc/")
    podman("start", name)
    return name


def _without_keys(words: list[str]) -> list[str]:
    """Leave out the host's SSH keys, which a node of no playbook has not."""
    keys = {place for place, word in enumerate(words) if "/etc/ssh/" in word}
    return [word for place, word in enumerate(words) if place not in keys and place + 1 not in keys]
