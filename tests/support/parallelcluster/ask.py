"""Runs in ParallelCluster's venv: asks the functions of module `parallelcluster_check` for many cases in one process.

Cases come as JSON on stdin: name -> {config, live?, running?}; answers go to stdout in the same way. Ansible is not in
that venv; what the module takes of it is only how it is called.
"""

import json
import sys
import types
from pathlib import Path

from pcluster.validators import slurm_settings_validator

LIBRARY = Path(__file__).parents[3] / "roles/provider_parallelcluster/library"


def answer(check, case):
    """What the module would answer."""
    check.silence("us-east-1")
    cluster, problems = check.schema("lab1", case["config"])
    cautions, ran = [], []
    if cluster is not None:
        problems, cautions, ran = check.validators(cluster)
    live = case.get("live")
    rows = check.changes("lab1", live, case["config"], case.get("running", True)) if live else []
    return {"problems": problems, "cautions": cautions, "asked": ran, "changes": rows}


def main():
    """Answer all cases."""
    for name in ("ansible", "ansible.module_utils", "ansible.module_utils.basic"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["ansible.module_utils.basic"].AnsibleModule = None
    sys.path.insert(0, str(LIBRARY))
    import parallelcluster_check

    reported = {name: answer(parallelcluster_check, case) for name, case in json.load(sys.stdin).items()}
    print(json.dumps({"answers": reported, "denied": slurm_settings_validator.SLURM_SETTINGS_DENY_LIST}))


if __name__ == "__main__":
    main()
