"""How long do a second run of site.yml and one more compute node take?

Both are what an admin does daily. The second run must also change nothing. The new node is described in an
inventory of its own beside the test bed's, and is removed again.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench.results import save

ROOT = Path(__file__).resolve().parents[2]
LOCAL = "inventories/local"
RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
ROLE = re.compile(r"^(\S+) -{3,} +([\d.]+)s$", re.MULTILINE)
NEW_NODE = """\
provider_local:
  hosts:
    {node}: {{provider_local_index: {index}}}
compute:
  hosts:
    {node}:
"""


def play(console: Console, *arguments: str) -> dict[str, object]:
    """Run one playbook and return its time, its changes and the time of each role."""
    command = [str(ROOT / ".venv/bin/ansible-playbook"), *arguments]
    environment = os.environ | {"ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1"}
    begin = time.monotonic()
    with console.status(" ".join(arguments)):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    seconds = round(time.monotonic() - begin, 1)
    if done.returncode:
        console.print(done.stdout[-4000:], done.stderr[-4000:], markup=False)
        sys.exit(f"{' '.join(command)} failed")
    changed = sum(int(host[1]) for host in RECAP.findall(done.stdout))
    console.print(f"{' '.join(arguments)}: {seconds} s, changed={changed}", markup=False)
    roles = {name: float(spent) for name, spent in ROLE.findall(done.stdout) if name != "total"}
    return {"seconds": seconds, "changed": changed, "roles": roles}


@contextmanager
def inventory_with(node: str, index: int) -> Iterator[str]:
    """Describe one more node beside the test bed's inventory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.yml"
        path.write_text(NEW_NODE.format(node=node, index=index))
        yield str(path)


def measure_node(console: Console, node: str, index: int) -> dict[str, object]:
    """Add a node and remove it again."""
    with inventory_with(node, index) as extra:
        sources = ("-i", LOCAL, "-i", extra, "-e", f"nodes={node}")
        try:
            return play(console, *sources, "playbooks/add_nodes.yml")
        finally:
            play(console, *sources, "playbooks/remove_nodes.yml")


def main() -> int:
    """Measure both; the exit status says whether the second run changed something."""
    parser = argparse.ArgumentParser(description="Time a second run of site.yml and one more node.")
    parser.add_argument("--node", default="c3", help="name of the new node (default: %(default)s)")
    parser.add_argument("--index", type=int, default=23, help="its provider_local_index (default: %(default)s)")
    arguments = parser.parse_args()
    console = Console()
    figures: dict[str, Any] = {
        "second_run": play(console, "site.yml"),
        "one_more_node": measure_node(console, arguments.node, arguments.index),
    }
    print(save("site_times", **figures))
    return 1 if figures["second_run"]["changed"] else 0


if __name__ == "__main__":
    sys.exit(main())
