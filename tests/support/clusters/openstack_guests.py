"""Guests that boot, in the OpenStack of the tests: a hypervisor in place of the fake one, and the way to its guests.

QEMU translates their processors itself, some ten to twenty times slower than the machine. So there are two: the
controller is the submit host and runs jobs too, with the shared home on its own disk. They are in a network without a
router; the box has their gateway's address, and this machine reaches them through it. They reach one another and this
machine, nothing else: the image of a node has all packages.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.clusters.cluster import ROOT
from tests.support.clusters.openstack_site import NAME, Project, Site
from tests.support.servers.openstack import FILES, Box
from tests.support.wait import wait

GATEWAY, CIDR = "10.20.0.1/24", "10.20.0.0/24"
# On idle cores two minutes; they are shared.
BOOT_S = 3000
HOST = "guests"
NODES = {"ctl": {"group": "controller", "at": 10}, "c": {"group": "compute", "count": 1, "at": 21}}
# A user's control plane takes 2 GiB of a node. No server gets more CPUs than its hypervisor has.
FLAVOR = {"name": "hpc.guest", "vcpus": 2, "ram": 4096, "disk": 10}
MACHINES = {name: {"flavor": FLAVOR["name"]} for name in NODES}
HOME = "/home 10.20.0.0/24(rw,async,no_subtree_check)"
# An answer within the 20 s of ansible.cfg is too much to ask of a guest that boots, as one within 10 s is of Slurm's.
SITE = {
    "ansible_ssh_timeout": 120,
    "base_users": [{"name": "ada", "uid": 2001}],
    "base_home_mode": "nfs",
    "base_home_nfs_source": "ctl:/home",
    # A user's control plane and a pod on two CPUs: more of them are declared, and so none is bound to.
    "slurm_node": {"cpus": 4, "memory_mib": 3584},
    "slurm_conf_extra": {"MessageTimeout": 100, "SlurmdParameters": "config_overrides", "TaskPlugin": "task/cgroup"},
    "slurm_cgroup_conf_extra": {"ConstrainCores": False},
    "main_job_run": True,
    "main_job_user": "ada",
    "main_job_hpcc": False,
    "main_job_timeout_s": 1800,
    # On two CPUs a control plane takes four minutes; on one the API server ends before it has checked what is stored.
    "kubernetes_cpus": 2,
    "kubernetes_job_timeout_s": 1800,
    # Their images are half a GiB, over an SSH that QEMU translates.
    "workloads": [],
}
# Beside the layers' packages, for the home; each by its name, or apt counts it as a dependency that may go again.
PACKAGES = ["nfs-common", "nfs-kernel-server"]


def add_hypervisor(running: Box) -> None:
    """Have nova boot guests; its fake hypervisors get no more."""
    running.run("bash", "-s", GATEWAY, given=(FILES.parent / "openstack_guests.sh").read_text())
    compute = Project(running).admin.compute
    wait(lambda: {one.state for one in compute.services() if one.host == HOST}, {"up"}.__eq__, timeout_s=600)
    # The scheduler knows it once its cell has found it. Without details, which nova would ask of the fake ones too.
    wait(lambda: {one.name for one in compute.hypervisors()}, {running.name}.__le__, timeout_s=600)
    compute.create_flavor(**FLAVOR)
    for one in compute.services():
        if one.binary == "nova-compute" and one.host != HOST:
            compute.disable_service(one)


@contextmanager
def way(running: Box) -> Iterator[None]:
    """Have this machine reach guests by way of the box."""
    subprocess.run(["ip", "route", "replace", CIDR, "via", running.address], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "route", "del", CIDR], check=False)


def write(site: Site, disk: Path) -> None:
    """Write the inventory of a controller and a compute node, both from this image of a node."""
    site.write(1, external="", dhcp=False, home_gib=0, image_file=str(disk))
    source = yaml.safe_load((site.folder / "cluster.yml").read_text())
    source["nodes"] = NODES
    source["openstack"] |= {"machines": MACHINES, "boot_timeout_s": BOOT_S, "timeout_s": BOOT_S}
    (site.folder / "cluster.yml").write_text(yaml.safe_dump(source))
    results = {"main_job_results_dir": str(site.state / "results")}
    (site.folder / "group_vars/all/site.yml").write_text(yaml.safe_dump(SITE | results))
    (site.folder / "groups.yml").unlink()
    (site.folder / "groups.yml").write_text(yaml.safe_dump(groups()))
    connection = site.folder / "group_vars/provider_openstack/connection.yml"
    connection.unlink(missing_ok=True)
    connection.symlink_to(ROOT / "inventories/openstack.example/group_vars/provider_openstack/connection.yml")


def groups() -> dict[str, Any]:
    """Return the groups of a site whose controller runs jobs too."""
    known: dict[str, Any] = yaml.safe_load((ROOT / "inventories/common/groups.yml").read_text())
    return {"all": {"children": known["all"]["children"] | {"compute": {"children": {"controller": None}}}}}


def share_home(site: Site) -> None:
    """Have the controller export its /home, as docs/admins/openstack.md leaves it to the admin."""
    ask(site, "ctl", f"mkdir -p /etc/exports.d && echo '{HOME}' >/etc/exports.d/home.exports")
    ask(site, "ctl", "systemctl enable --now nfs-server && exportfs -ra")


def ask(site: Site, node: str, command: str) -> str:
    """Return what a command in a guest prints, as an admin runs it over SSH."""
    config = site.state / f"isthmus/{NAME}/ssh/config"
    command_line = ["ssh", "-F", str(config), node, command]
    done = subprocess.run(command_line, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} on {node}: {done.stdout}{done.stderr}"
    return done.stdout.strip()
