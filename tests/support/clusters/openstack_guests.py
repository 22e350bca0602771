"""Guests that boot, in the OpenStack of the tests: a hypervisor in place of the fake one, and the way to its guests.

QEMU translates their processors itself, some ten to twenty times slower than the machine: two cores carry three. They
are in a network without a router; the box has their gateway's address, and this machine reaches them through it. They
reach one another and this machine, nothing else: the image of a node has all packages.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.support.clusters.cluster import ROOT
from tests.support.clusters.openstack_site import NAME, Project, Site
from tests.support.servers.openstack import FILES, Box
from tests.support.wait import wait

GATEWAY, CIDR = "10.20.0.1/24", "10.20.0.0/24"
# On idle cores two minutes; they are shared.
BOOT_S = 3000
HOST = "guests"
NODES = {"ctl": {"group": "controller", "at": 10}, "c": {"group": "compute", "count": 2, "at": 21}}
MACHINES = {"ctl": {"flavor": "hpc.login"}, "c": {"flavor": "hpc.small"}}
# An answer within the 20 s of ansible.cfg is too much to ask of a guest that boots.
SITE = {
    "ansible_ssh_timeout": 120,
    "base_users": [{"name": "ada", "uid": 2001}],
    "slurm_partitions": [{"name": "batch", "nodes": ["c"], "default": True}],
}


def add_hypervisor(running: Box) -> None:
    """Have nova boot guests; its fake hypervisor gets no more."""
    running.run("bash", "-s", GATEWAY, given=(FILES.parent / "openstack_guests.sh").read_text())
    compute = Project(running).admin.compute
    wait(lambda: {one.state for one in compute.services() if one.host == HOST}, {"up"}.__eq__, timeout_s=600)
    # The scheduler knows it once its cell has found it.
    wait(lambda: {one.hypervisor_type for one in compute.hypervisors(details=True)}, {"QEMU"}.__le__, timeout_s=600)
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
    """Write the inventory of a controller and two compute nodes, all from this image of a node."""
    site.write(2, external="", dhcp=False, home_gib=0, image_file=str(disk))
    source = yaml.safe_load((site.folder / "cluster.yml").read_text())
    source["nodes"] = NODES
    source["openstack"] |= {"machines": MACHINES, "boot_timeout_s": BOOT_S, "timeout_s": BOOT_S}
    (site.folder / "cluster.yml").write_text(yaml.safe_dump(source))
    (site.folder / "group_vars/all/site.yml").write_text(yaml.safe_dump(SITE))
    connection = site.folder / "group_vars/provider_openstack/connection.yml"
    connection.unlink(missing_ok=True)
    connection.symlink_to(ROOT / "inventories/openstack.example/group_vars/provider_openstack/connection.yml")


def ask(site: Site, node: str, command: str) -> str:
    """Return what a command in a guest prints, as an admin runs it over SSH."""
    config = site.state / f"isthmus/{NAME}/ssh/config"
    command_line = ["ssh", "-F", str(config), node, command]
    done = subprocess.run(command_line, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} on {node}: {done.stdout}{done.stderr}"
    return done.stdout.strip()
