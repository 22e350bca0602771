"""What tests change of a site's registry for a moment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.clusters.cluster import Node

# As the role writes the file, so that a run of the playbook afterwards changes nothing.
_SET = """
import json, sys
path, user, quota = "/etc/isthmus/tokend.json", sys.argv[1], int(sys.argv[2])
settings = json.load(open(path))
account = settings["accounts"][user]
print(account["quota_bytes"])
account["quota_bytes"] = quota
open(path, "w").write(json.dumps(settings, indent=1) + "\\n")
"""


@contextmanager
def quota(controller: Node, user: str, quota_bytes: int) -> Iterator[None]:
    """Let a user have so much in the registry, and the site's quota again afterwards."""
    command = f"python3 -c {shlex.quote(_SET)} {user}"
    before = controller.output(f"{command} {quota_bytes}").strip()
    try:
        yield
    finally:
        controller.output(f"{command} {before}")
