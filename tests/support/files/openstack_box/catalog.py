"""What the box has to offer: users, endpoints, an image, flavors, a volume type and a network to the outside.

    catalog.py users | content | ready

`users` needs keystone alone, `content` every service; `ready` waits for them and makes nothing.
"""

import sys
import time

import openstack
from openstack.exceptions import SDKException

PORTS = {
    "image": ("glance", "9292"),
    "placement": ("placement", "8778"),
    "compute": ("nova", "8774/v2.1"),
    "network": ("neutron", "9696"),
    "volumev3": ("cinder", "8776/v3"),
}
FLAVORS = {"hpc.small": (1, 1024, 4), "hpc.login": (2, 2048, 10), "hpc.compute": (4, 8192, 20)}
EXTERNAL = {"provider_network_type": "flat", "provider_physical_network": "physnet1", "is_router_external": True}
POOL = {"start": "203.0.113.100", "end": "203.0.113.200"}
# As many as setup.sh starts.
HYPERVISORS = 4
WAIT_S = 900


def until(what, ask):
    """Ask until there is an answer that counts."""
    end = time.monotonic() + WAIT_S
    while True:
        try:
            answer = ask()
        except (SDKException, OSError) as error:
            answer, why = None, error
        else:
            why = "no answer"
        if answer:
            return answer
        if time.monotonic() > end:
            raise SystemExit(f"{what} is not there after {WAIT_S} s: {why}")
        time.sleep(1)


def users(cloud):
    """Make the services' users, the ordinary user `hpc` and the endpoints."""
    identity = cloud.identity
    until("keystone", lambda: list(identity.projects()))
    password = cloud.config.config["auth"]["password"]
    domain = identity.find_domain("Default")
    roles = {
        name: identity.find_role(name) or identity.create_role(name=name)
        for name in ("member", "reader", "admin", "service")
    }

    def project(name):
        return identity.find_project(name) or identity.create_project(name=name, domain_id=domain.id)

    def user(name, of, *given):
        made = identity.find_user(name) or identity.create_user(
            name=name, password=password, domain_id=domain.id, default_project_id=of.id
        )
        for role in given:
            identity.assign_project_role_to_user(of, made, roles[role])

    service = project("service")
    for name, _ in PORTS.values():
        user(name, service, "admin", "service")
    user("hpc", project("hpc"), "member")
    endpoints(cloud)


def endpoints(cloud):
    """Say where each service is."""
    address = cloud.config.config["auth"]["auth_url"].split("//")[1].split(":")[0]
    region = cloud.config.get_region_name()
    identity = cloud.identity
    there = {service.type: service for service in identity.services()}
    have = {(one.service_id, one.interface) for one in identity.endpoints()}
    for kind, (name, place) in PORTS.items():
        service = there.get(kind) or identity.create_service(type=kind, name=name)
        for interface in ("public", "internal", "admin"):
            if (service.id, interface) not in have:
                url = f"http://{address}:{place}"
                identity.create_endpoint(service_id=service.id, interface=interface, url=url, region_id=region)


def content(cloud):
    """Make what a project finds in a cloud."""
    services(cloud)
    if not cloud.image.find_image("debian-13"):
        cloud.create_image(
            "debian-13",
            data=b"\0" * 4096,
            disk_format="raw",
            container_format="bare",
            visibility="public",
            wait=True,
        )
    for name, (cpus, memory, disk) in FLAVORS.items():
        if not cloud.compute.find_flavor(name):
            cloud.compute.create_flavor(name=name, vcpus=cpus, ram=memory, disk=disk)
    if not cloud.network.find_network("external"):
        network = cloud.network.create_network(name="external", is_shared=False, **EXTERNAL)
        cloud.network.create_subnet(
            name="external-v4",
            network_id=network.id,
            ip_version=4,
            cidr="203.0.113.0/24",
            gateway_ip="203.0.113.1",
            enable_dhcp=False,
            allocation_pools=[POOL],
        )
    if not cloud.block_storage.find_type("fake"):
        cloud.block_storage.create_type(name="fake", extra_specs={"volume_backend_name": "fake"})
    ready(cloud)


def services(cloud):
    """Wait until each API answers."""
    until("glance", lambda: list(cloud.image.images()) is not None)
    until("neutron", lambda: list(cloud.network.networks()) is not None)
    until("nova", lambda: list(cloud.compute.flavors()) is not None)
    until("cinder", lambda: list(cloud.block_storage.types()) is not None)


def ready(cloud):
    """Wait until servers and volumes can be made."""
    services(cloud)
    until("nova-compute", lambda: all_up(cloud.compute.services(), "nova-compute", "nova-conductor", "nova-scheduler"))
    until("cinder-volume", lambda: all_up(cloud.block_storage.services(), "cinder-volume", "cinder-scheduler"))
    until("each hypervisor", lambda: len(list(cloud.compute.hypervisors())) >= HYPERVISORS)


def all_up(found, *wanted):
    """Return whether each of these has reported within the last minute, wherever it runs."""
    there = [one for one in found if one.binary in wanted]
    return {one.binary for one in there} == set(wanted) and all(one.state == "up" for one in there)


if __name__ == "__main__":
    cloud = openstack.connect(cloud="box-admin")
    {"users": users, "content": content, "ready": ready}[sys.argv[1]](cloud)
