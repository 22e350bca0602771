"""What podman is given, for machines of each kind."""

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.local import podman

ALL_RIGHTS = "CapEff:\t000001ffffffffff\n"
NO_RESOURCE = "CapEff:\t000001fffeffffff\n"
LIMITS = (
    "Max processes             96365                96365                processes\n"
    "Max open files            20000                20000                files\n"
)
UNLIMITED = "Max processes             unlimited            unlimited            processes\n"
ROUTES = [{"dst": "default", "dev": "eth0"}, {"dst": "192.0.2.0/24", "dev": "eth0"}]
NODE = {
    "name": "c1",
    "cluster": "bed",
    "address": "10.231.9.21",
    "image": "localhost/image:1",
    "keys": "/state/ssh",
    "shm_size": "1g",
}


def engine(version: str, status: str, limits: str = LIMITS, runtime: str = "auto") -> list[str]:
    return podman.local_engine({"host": {"cgroupVersion": version}}, status, limits, runtime)


@pytest.mark.parametrize(
    ("version", "status", "runtime", "expected"),
    [
        ("v2", ALL_RIGHTS, "auto", []),
        ("v1", ALL_RIGHTS, "auto", ["--runtime", "runc"]),
        ("v2", ALL_RIGHTS, "crun", ["--runtime", "crun"]),
    ],
)
def test_engine_leaves_limits_where_they_can_be_raised(version, status, runtime, expected):
    assert engine(version, status, runtime=runtime) == expected


def test_engine_keeps_limits_that_cannot_be_raised():
    expected = ["--runtime", "runc", "--ulimit", "nofile=20000:20000", "--ulimit", "nproc=32768:32768"]
    assert engine("v2", NO_RESOURCE) == expected


def test_engine_bounds_an_unlimited_process_count():
    assert "nproc=32768:32768" in engine("v1", NO_RESOURCE, UNLIMITED)


def container(name: str, state: str) -> dict[str, object]:
    return {"Names": [name], "State": state, "Id": f"id-of-{name}"}


@pytest.mark.parametrize(
    ("containers", "remove", "create", "start"),
    [
        ([], [], ["c1", "c2"], []),
        ([container("bed-c1", "running")], [], ["c2"], []),
        ([container("bed-c1", "exited"), container("bed-c2", "running")], [], [], ["bed-c1"]),
        ([container("other-c1", "running")], [], ["c1", "c2"], []),
        ([container("bed-c1", "running"), container("bed-c2", "exited")], [], [], ["bed-c2"]),
    ],
)
def test_plan_names_missing_and_stopped_nodes(containers, remove, create, start):
    cgroups = "0::/init\n1:cpu:/libpod-id-of-bed-c1\n1:cpu:/libpod-id-of-bed-c2\n"
    plan = podman.local_plan(containers, "bed", ["c1", "c2"], cgroups)
    assert plan == {"remove": remove, "create": create, "start": start}


@pytest.mark.parametrize("state", ["running", "stopping"])
def test_plan_makes_a_node_again_whose_process_podman_only_trusts_in(state):
    containers = [container("bed-c1", state), container("bed-c2", "running")]
    plan = podman.local_plan(containers, "bed", ["c1", "c2"], "1:cpu:/libpod-id-of-bed-c2\n")
    assert plan == {"remove": ["bed-c1"], "create": ["c1"], "start": []}


def test_run_command_fixes_address_mac_host_key_and_limits():
    command = podman.local_run_command(NODE, ["--runtime", "runc"])
    assert command[command.index("--pids-limit") + 1] == "-1"
    assert "bed:ip=10.231.9.21,mac=02:49:0a:e7:09:15,alias=c1" in command
    assert "/state/ssh/c1:/etc/ssh/ssh_host_ed25519_key:ro" in command
    assert command[-4:] == ["--runtime", "runc", "localhost/image:1", "/sbin/init"]


@pytest.mark.parametrize(
    ("subnet", "expected"),
    [("10.231.0.0/24", []), ("192.0.2.128/25", ["192.0.2.0/24"]), ("192.0.0.0/16", ["192.0.2.0/24"])],
)
def test_overlaps_names_the_routes_in_the_way(subnet, expected):
    assert podman.local_overlaps(ROUTES, subnet) == expected


def test_overlaps_refuses_what_is_no_network():
    with pytest.raises(InputError, match=r"provider_local_subnet.*write an IPv4 network"):
        podman.local_overlaps(ROUTES, "10.231.0.7/24")


@pytest.mark.parametrize(("routes", "expected"), [(ROUTES, 1400), ([], 1500)])
def test_mtu_is_that_of_the_default_route(routes, expected):
    assert podman.local_mtu([{"ifname": "lo", "mtu": 65536}, {"ifname": "eth0", "mtu": 1400}], routes) == expected


@pytest.mark.parametrize(
    ("used", "limit", "nodes", "is_refused"),
    [(0, 128, 4, False), (108, 128, 1, False), (108, 128, 4, True), (200, 128, 0, False)],
)
def test_nodes_that_could_not_be_watched_are_refused(used, limit, nodes, is_refused):
    reported = podman.local_watchers_problem({"used": used, "limit": limit}, nodes)
    assert bool(reported) is is_refused
    assert not reported or "sysctl fs.inotify.max_user_instances=1024" in reported
