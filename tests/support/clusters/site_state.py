"""What a site is, to be compared with what it was: its files, its units, what daemons run with, and what they answer.

Left out is what time alone changes: counters, the next job's number, the date of a boot.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.support.clusters.cluster import Node


def python(script: str) -> str:
    """A command that runs a script on a node."""
    return f"python3 -c {shlex.quote(script)}"


FILES = "find /etc /usr/local -xdev -printf '%M %u:%g %p %l\\n' | sort -k3"
# A compute node's Slurm settings came from slurmctld.
CONTENTS = "find /etc /usr/local $(ls -d /run/slurm/conf) -xdev -type f -exec sha256sum {} + | sort -k2"
DAEMONS: tuple[str, ...] = (
    "isthmus-networkd",
    "isthmus-dns",
    "isthmus-etcd",
    "slurmctld",
    "slurmdbd",
    "slurmd",
    "sackd",
    "munge",
)
DAEMONS += (
    "mariadb",
    "docker-registry",
    "isthmus-registry",
    "isthmus-tokend",
    "isthmus-registry-gc.timer",
    "isthmus-etcd-snapshot.timer",
    "isthmus-etcd-defrag.timer",
)
PROPERTIES = "Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload"
UNITS = f"for unit in {' '.join(DAEMONS)}; do systemctl show --property={PROPERTIES} $unit | paste -sd' '; done"
RULES = "nft --stateless --terse list ruleset"
# Of each unit which contents it began with and was last made to read; and whether that process is the one that runs.
RECORDS = """
import json, pathlib, subprocess
for path in sorted(pathlib.Path("/var/lib/isthmus/units").glob("*.json")):
    record = json.loads(path.read_text())
    show = ["systemctl", "show", "--property=InvocationID", "--value", path.stem]
    runs = subprocess.run(show, capture_output=True, text=True).stdout.strip() == record["invocation"]
    print(path.stem, record["files"], record["reloaded"], runs)
"""
SETTINGS = "scontrol show config | grep -vE 'as of|BOOT_TIME|NEXT_JOB_ID|Slurmctld\\('"
PARTITIONS = "scontrol --all show partitions"
ACCOUNTS = "sacctmgr --noheader --parsable2 show associations format=account,user,qos,grptres"
MEMBERS = "isthmus-etcdctl member list && isthmus-etcdctl user list && isthmus-etcdctl role list"
QUOTA = """
from urllib.request import urlopen
lines = urlopen("http://127.0.0.1:2381/metrics").read().decode().splitlines()
print([line for line in lines if line.startswith("etcd_server_quota_backend_bytes ")])
"""

ON_EACH = {"files": FILES, "contents": CONTENTS, "units": UNITS, "rules": RULES, "records": python(RECORDS)}
ON_CONTROLLER = {"settings": SETTINGS, "partitions": PARTITIONS, "accounts": ACCOUNTS, "members": MEMBERS}
ON_CONTROLLER |= {"quota": python(QUOTA)}
WORKERS = 8


def look(nodes: Iterable[Node], controller: Node) -> dict[str, list[str]]:
    """All of it; `node: what` -> lines, so that a difference is short."""
    commands = {f"{node.name}: {what}": (node, each) for node in nodes for what, each in ON_EACH.items()}
    commands |= {f"controller: {what}": (controller, each) for what, each in ON_CONTROLLER.items()}
    with ThreadPoolExecutor(WORKERS) as pool:
        outputs = pool.map(lambda command: command[0].output(command[1]), commands.values())
        return {what: output.splitlines() for what, output in zip(commands, outputs, strict=True)}


def is_behind(state: dict[str, list[str]]) -> bool:
    """Return whether units were started since by somebody else, such as a boot: the next run takes note of them."""
    return any(line.endswith(" False") for what, lines in state.items() if what.endswith("records") for line in lines)


def differences(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, list[str]]:
    """What one of both has and the other has not."""
    return {
        what: sorted({*before[what]} ^ {*after[what]}) for what in before if {*before[what]} != {*after.get(what, [])}
    }
