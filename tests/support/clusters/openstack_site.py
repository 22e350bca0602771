"""A site on an OpenStack: its inventory, playbooks on it as an admin runs them, and what the cloud has then."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openstack
import pytest
import yaml

from tests.bench import results
from tests.support.clusters import playbooks
from tests.support.clusters.cluster import BIN, ROOT
from tests.support.servers import openstack as box
from tests.support.servers.openstack import Box
from tests.support.wait import wait

NAME = "ostest"
MACHINES = {
    # One with the home's volume beside its flavor's disk, one with a volume to boot from.
    "ctl": {"flavor": "hpc.login"},
    "login": {"flavor": "hpc.small", "boot_gib": 5},
    "c": {"flavor": "hpc.small"},
}


@dataclass
class Site:
    """An inventory, and the box.

    Attributes:
        folder: of the inventory.
        state: where the deployer keeps keys and record.
        times: what took how many seconds.
    """

    folder: Path
    state: Path
    box: Box
    times: dict[str, float] = field(default_factory=dict)

    def write(self, count: int, **settings: Any) -> None:
        """Write the inventory, with so many compute nodes."""
        nodes = {
            "ctl": {"group": "controller", "at": 10},
            "login": {"group": "login", "at": 11},
            "c": {"group": "compute", "count": count, "at": 21},
        }
        cloud = {"cloud": "box", "machines": MACHINES, "cidr": "10.20.0.0/24", "external": "external"}
        cloud |= {"home_gib": 3, **settings}
        source = {"plugin": "cluster_nodes", "provider": "openstack", "nodes": nodes, "openstack": cloud}
        for name in ("group_vars/all", "group_vars/provider_openstack"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        common = ROOT / "inventories/common"
        for place, target in (("groups.yml", "groups.yml"), ("group_vars/all/00_common", "group_vars/all")):
            (self.folder / place).unlink(missing_ok=True)
            (self.folder / place).symlink_to(common / target)
        (self.folder / "cluster.yml").write_text(yaml.safe_dump(source))

    @property
    def environment(self) -> dict[str, str]:
        """Of the deployer: its clouds.yaml, its state, the cluster's name."""
        state = {"XDG_STATE_HOME": str(self.state), "NAME": NAME}
        return {"OS_CLIENT_CONFIG_FILE": str(self.box.clouds), **state}

    def play(self, log: str, playbook: str, *arguments: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Run a playbook on the deployer."""
        extra = ["-e", json.dumps(variables)] if variables else []
        command = ("ansible-playbook", "-i", str(self.folder), playbook, *extra, *arguments)
        begun = time.monotonic()
        done = playbooks.run(f"openstack_{log}", str(BIN / command[0]), *command[1:], environment=self.environment)
        self.times[log] = round(time.monotonic() - begun, 1)
        return done

    def create(self, log: str, *arguments: str, **variables: Any) -> Any:
        """Run playbooks/create.yml but for its last play, which waits for SSH: no guest of the box boots."""
        return self.play(log, "playbooks/create.yml", "--tags", "configure", *arguments, variables=variables)

    def succeed(self, log: str, *arguments: str, **variables: Any) -> Any:
        """Run playbooks/create.yml, which must succeed."""
        done = self.create(log, *arguments, **variables)
        assert done.rc == 0, f"see results/logs/openstack_{log}.log"
        return done

    @contextmanager
    def clouds(self, written: Callable[[str], str]) -> Iterator[str]:
        """Have another clouds.yaml; yield the text that it had and gets back."""
        kept = self.box.clouds.read_text()
        try:
            self.box.clouds.write_text(written(kept))
            yield kept
        finally:
            self.box.clouds.write_text(kept)

    @contextmanager
    def application_credential(self, project: Project, name: str, **given: Any) -> Iterator[Any]:
        """Have an application credential in clouds.yaml, in place of the password; yield it."""
        made = project.user.identity.create_application_credential(project.user.current_user_id, name, **given)
        login = {"application_credential_id": made.id, "application_credential_secret": made.secret}

        def written(text: str) -> str:
            clouds = yaml.safe_load(text)
            box = clouds["clouds"]["box"]
            box |= {"auth_type": "v3applicationcredential", "auth": {"auth_url": box["auth"]["auth_url"], **login}}
            return str(yaml.safe_dump(clouds))

        with self.clouds(written):
            yield made

    def kill(self, playbook: str, reached: Callable[[], object]) -> None:
        """Kill a playbook, with all it started, once something is so."""
        command = [BIN / "ansible-playbook", "-i", self.folder, "--tags", "configure", playbook]
        environment = {**os.environ, **self.environment}
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
            wait(reached, interval_s=0.2)
            # Ansible's workers live on without it.
            workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for one in (process.pid, *map(int, workers)):
                os.kill(one, signal.SIGKILL)

    def remove(self, log: str, *nodes: str) -> None:
        """Remove nodes' machines, as playbooks/remove_nodes.yml does in the end."""
        done = self.play(log, "tests/site/files/openstack_remove.yml", variables={"nodes_names": nodes})
        assert done.rc == 0

    def inventory(self) -> dict[str, Any]:
        """Return what ansible-inventory says."""
        command = [BIN / "ansible-inventory", "-i", self.folder, "--list"]
        done = subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True, env={**self.environment, "PATH": "/usr/bin"}
        )
        return dict(json.loads(done.stdout))


class Project:
    """What an ordinary user's project has, and its admin's means."""

    def __init__(self, box: Box) -> None:
        clouds = [str(box.clouds)]
        config = openstack.config.OpenStackConfig(config_files=clouds, load_envvars=False)
        self.user, self.admin = (
            openstack.connection.Connection(config=config.get_one(cloud=name)) for name in ("box", "box-admin")
        )
        self.id = self.user.current_project_id

    def listing(self) -> dict[str, list[str]]:
        """Every kind of thing -> names of what there is of it."""
        user, network = self.user, self.user.network
        mine = {"project_id": self.id}
        found = {
            "servers": user.compute.servers(),
            "key pairs": user.compute.keypairs(),
            "server groups": user.compute.server_groups(),
            "networks": [one for one in network.networks() if one.project_id == self.id],
            "subnets": [one for one in network.subnets() if one.project_id == self.id],
            "routers": network.routers(**mine),
            "ports": network.ports(**mine),
            "security groups": [one for one in network.security_groups(**mine) if one.name != "default"],
            "floating IPs": network.ips(**mine),
            "volumes": user.block_storage.volumes(),
            "images": [one for one in user.image.images() if one.owner_id == self.id],
        }
        return {kind: sorted(one.name or one.id for one in there) for kind, there in found.items()}

    def servers(self) -> dict[str, Any]:
        """Name -> server, as the admin sees it, user data included."""
        return {one.name: one for one in self.admin.compute.servers(all_projects=True, project_id=self.id)}

    def port(self, name: str) -> Any:
        """A port by its name."""
        return next(iter(self.user.network.ports(name=name)))

    @contextmanager
    def second_region(self, name: str) -> Iterator[None]:
        """Have another region in the catalog, of the same services."""
        identity, url = self.admin.identity, self.admin.compute.get_endpoint()
        compute = next(one for one in identity.services() if one.type == "compute")
        identity.create_region(id=name)
        made = identity.create_endpoint(service_id=compute.id, interface="public", url=url, region_id=name)
        try:
            yield
        finally:
            identity.delete_endpoint(made)
            identity.delete_region(name)

    @contextmanager
    def flavor(self, memory_mib: int) -> Iterator[str]:
        """Have a flavor of this memory; yield its name."""
        name = f"hpc.{memory_mib}"
        made = self.admin.compute.create_flavor(name=name, vcpus=1, ram=memory_mib, disk=4)
        try:
            yield name
        finally:
            self.admin.compute.delete_flavor(made)

    def quota(self, **limits: int) -> None:
        """Set the project's limits of nova."""
        self.admin.compute.update_quota_set(self.id, **limits)


@contextmanager
def in_box(folder: Path, name: str) -> Iterator[tuple[Site, Project]]:
    """Have a site in a project of its own, for tests beside others; write down what its playbooks took."""
    if not box.is_built():
        pytest.skip(
            f"{box.image()} is not there; left to `make test-full`, which makes it (tests/full/test_openstack.py)"
        )
    places = {place: folder / place for place in ("inventory", "state", "clouds")}
    for place in places.values():
        place.mkdir()
    with box.used(places["clouds"]) as running, own_project(running, name) as project:
        site = Site(places["inventory"], places["state"], running)
        yield site, project
        results.save(name, seconds=site.times)


@contextmanager
def own_project(running: Box, name: str) -> Iterator[Project]:
    """Have a user with a project, both of this name and something at random, in clouds.yaml as `box`."""
    identity = Project(running).admin.identity
    name = f"{name}-{secrets.token_hex(4)}"
    text = running.clouds.read_text()
    made = identity.create_project(name=name, domain_id="default")
    password = yaml.safe_load(text)["clouds"]["box"]["auth"]["password"]
    user = identity.create_user(name=name, password=password, domain_id="default", default_project_id=made.id)
    identity.assign_project_role_to_user(made, user, identity.find_role("member"))
    running.clouds.write_text(text.replace("name: hpc,", f"name: {name},"))
    try:
        yield Project(running)
    finally:
        identity.delete_user(user)
        identity.delete_project(made)


def two_regions(text: str) -> str:
    """Have clouds.yaml leave the choice of a region to the inventory."""
    return text.replace("region_name: RegionOne", "regions: [RegionOne, RegionTwo]")


def qcow2(content: int) -> bytes:
    """Return a disk of one empty MiB, as qemu-img writes its header; another content, another checksum."""
    head = b"QFI\xfb" + (3).to_bytes(4, "big") + bytes(12) + (16).to_bytes(4, "big") + (2**20).to_bytes(8, "big")
    return (head + bytes(72)).ljust(104, b"\0") + bytes(65536 * 4) + bytes([content])
