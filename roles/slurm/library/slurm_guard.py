"""The module `slurm_guard`, on the controller: what would make an upgrade fail in the middle, before it begins."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

QUEUE = re.compile(r"DBD Agent queue size:\s*(\d+)")
# What slurmctld has not handed on to slurmdbd yet; more grows while that is away.
QUEUE_MOST = 5000
# Conversion may hold a second copy of its largest table beside the dump.
TIMES = 3
LEAST_MIB = 200


def problems(queue: str, database_bytes: int, free_bytes: int, folder: str) -> list[str]:
    """What stands in the way, each with its remedy."""
    found = []
    waiting = QUEUE.search(queue)
    if waiting and int(waiting[1]) > QUEUE_MOST:
        found.append(f"slurmctld has {waiting[1]} records for slurmdbd (`sdiag`); let it hand them on first")
    need = max(LEAST_MIB << 20, TIMES * database_bytes)
    if free_bytes < need:
        found.append(f"{folder} has {free_bytes >> 20} MiB left, and {need >> 20} are needed for the dump; make room")
    return found


def main() -> None:
    """Look."""
    module = AnsibleModule(
        {"database": {"type": "str", "required": True}, "folder": {"type": "path", "required": True}},
        supports_check_mode=True,
    )
    _, queue, _ = module.run_command(["sdiag"])
    question = (
        "SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE table_schema = "
    )
    command = ["mariadb", "--batch", "--skip-column-names", f"--execute={question}'{module.params['database']}'"]
    code, size, error = module.run_command(command)
    if code:
        module.fail_json(msg=f"MariaDB does not answer: {error.strip()}; see `systemctl status mariadb` on this host")
    folder = Path(module.params["folder"])
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free = os.statvfs(existing)
    if found := problems(queue, int(float(size)), free.f_bavail * free.f_frsize, str(existing)):
        module.fail_json(msg="; ".join(found))
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
