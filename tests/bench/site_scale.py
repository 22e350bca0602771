"""What does a task that describes the cluster cost on 500 hosts, compared with one that does nothing?

The hosts are made up and reached by no connection: only what the deployer computes is measured. A task whose cost
grows with hosts times hosts shows as a ratio far above 1; the empty task of the same run is the floor.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from ipaddress import IPv4Address
from pathlib import Path

from rich.console import Console

from tests.bench.results import save

ROOT = Path(__file__).resolve().parents[2]
EMPTY = "Do nothing"
ROLES = ("base", "network")
QUIET = {
    "ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks,filters_once",
    "ANSIBLE_DISPLAY_OK_HOSTS": "false",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
    "PROFILE_TASKS_SORT_ORDER": "none",
}
# Of profile_tasks: `/etc/hosts of a host ------ 1.23s`.
SPENT = re.compile(r"^(\S.*?) -{3,} +([\d.]+)s$", re.MULTILINE)
INVENTORY = """\
all:
  vars: {{ansible_connection: local, ansible_host: 192.0.2.1}}
controller:
  hosts:
    ctl:
login:
  hosts:
    login:
compute:
  hosts:
    c[1:{compute}]:
"""
PLAYBOOK = """\
- name: What describes the cluster
  hosts: base
  gather_facts: false
  vars_files: [{files}]
  tasks:
    - {{name: Warm up, ansible.builtin.assert: {{that: inventory_hostname is string, quiet: true}}}}
    - {{name: Do nothing, ansible.builtin.assert: {{that: inventory_hostname is string, quiet: true}}}}
    - name: Names of all hosts, once
      ansible.builtin.set_fact:
        __base_hosts_file: "{{{{ groups.base | base_addresses(hostvars) | base_hosts_file(base_domain) }}}}"
      run_once: true
    - name: /etc/hosts of each host
      ansible.builtin.assert: {{that: __base_hosts_file is search(inventory_hostname), quiet: true}}
    - name: What all hosts share, once
      ansible.builtin.set_fact:
        __network_shared: "{{{{ _network_shared }}}}"
      run_once: true
    - name: network.json of each host
      ansible.builtin.assert: {{that: _network_settings | to_nice_json is search(inventory_hostname), quiet: true}}
"""


def describe(folder: Path, hosts: int) -> None:
    """Write an inventory of so many made-up hosts: a controller, a login node, and compute nodes."""
    for name in ("group_vars/all", "groups.yml"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).symlink_to(ROOT / "inventories/common" / name)
    (folder / "hosts.yml").write_text(INVENTORY.format(compute=hosts - 2))
    (folder / "host_vars").mkdir()
    for number, name in enumerate(["ctl", "login", *(f"c{each}" for each in range(1, hosts - 1))], 1):
        address = IPv4Address("10.99.0.0") + number
        (folder / f"host_vars/{name}.yml").write_text(f"base_address: {address}\n")


def measure(console: Console, hosts: int) -> dict[str, float]:
    """Return the time of each task, in seconds."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        describe(here / "inventory", hosts)
        (here / "cluster.id").write_text("00000000-0000-4000-8000-000000000000")
        kinds = ("defaults/*.yml", "vars/*.yml", "vars/main/*.yml", "vars/main/*/*.yml")
        files = [str(path) for role in ROLES for kind in kinds for path in sorted(ROOT.glob(f"roles/{role}/{kind}"))]
        playbook = here / "play.yml"
        playbook.write_text(PLAYBOOK.format(files=", ".join(files)))
        command = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(here / "inventory"), str(playbook)]
        # Of the role whose variables these are; there is none here.
        command += ["-e", f"role_path={ROOT}/roles/network", "-e", f"cluster_state_dir={here}"]
        with console.status(f"{hosts} hosts"):
            done = subprocess.run(command, cwd=ROOT, env=os.environ | QUIET, capture_output=True, text=True)
    if done.returncode:
        console.print(done.stdout[:4000], done.stderr[-4000:], markup=False)
        sys.exit(f"{' '.join(command)} failed")
    return {name: float(spent) for name, spent in SPENT.findall(done.stdout)}


def main() -> int:
    """Measure; the exit status says whether a task takes more than twice an empty one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=500, help="how many hosts to make up (default: %(default)s)")
    arguments = parser.parse_args()
    console = Console()
    spent = measure(console, arguments.hosts)
    ratios = {name: round(took / spent[EMPTY], 2) for name, took in spent.items() if name not in (EMPTY, "Warm up")}
    for name, ratio in ratios.items():
        console.print(f"{name}: {spent[name]} s, {ratio} of an empty task's {spent[EMPTY]} s", markup=False)
    print(save("site_scale", hosts=arguments.hosts, seconds=spent, ratios=ratios))
    return 1 if max(ratios.values()) > 2 else 0


if __name__ == "__main__":
    sys.exit(main())
