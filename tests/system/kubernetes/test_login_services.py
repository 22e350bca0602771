"""Services of a user's cluster from the user's login pod, and from nobody else's."""

import re

import pytest

from tests.support.clusters.sessions import inside, session, ssh, wait_for_pod
from tests.support.clusters.user_clusters import POD_S, fetch
from tests.support.wait import wait

UNIT = "isthmus-login-followers"


@pytest.fixture(scope="module", autouse=True)
def login_pods(login, settings):
    if login.run("grep -q 'pam_isthmus.so login' /etc/pam.d/sshd").rc:
        pytest.skip("the site has no login pods")
    if settings["headless"]:
        pytest.skip("this site's Services are headless")


@pytest.fixture(scope="module")
def logged_in(login, user):
    """A session of the owner's meanwhile."""
    with session(login, user):
        wait_for_pod(login, user, there=True)
        yield


@pytest.fixture(scope="module")
def place(login, user, logged_in, space):
    """Return where a Service is; the pod behind all of them answers."""
    space.ready("pod/web", POD_S)

    def find(name, port=80):
        return f"http://{space.kubectl(f'get service {name} -o jsonpath={{.spec.clusterIP}}')}:{port}"

    wait(lambda: ssh(login, user, fetch(find("web"))).stdout.strip() == "mine", timeout_s=60)
    return find


@pytest.mark.parametrize(("name", "port"), [("web", 80), ("noded", 8000), ("balanced", 8001)])
def test_owner_reaches_services_by_their_addresses(login, user, place, name, port):
    assert inside(login, user, fetch(place(name, port))) == "mine"


def test_owner_reaches_node_ports_at_the_address_of_the_node(login, user, place, space):
    node = space.kubectl("get node -o jsonpath='{.items[0].status.addresses[?(@.type==\"InternalIP\")].address}'")
    for name in ("noded", "balanced"):
        port = space.kubectl(f"get service {name} -o jsonpath={{.spec.ports[0].nodePort}}")
        assert inside(login, user, fetch(f"http://{node}:{port}")) == "mine"


def test_api_server_is_a_service_too(login, user, place):
    ask = "kubectl --kubeconfig ~/.isthmus/kubeconfig --server https://10.96.0.1 get --raw /version"
    assert "gitVersion" in inside(login, user, f"bash -lc '{ask}'")


def test_nobody_else_reaches_them(login, user, other_user, place):
    web = fetch(place("web"))
    assert ssh(login, other_user, web).rc != 0
    assert login.run(web).rc != 0
    assert login.try_as(other_user, web).rc != 0


def process(login, user):
    return login.run(f"pgrep -u {user} -f {UNIT}").stdout.strip()


def test_program_has_the_users_rights_and_network(login, user, place):
    pid = process(login, user)
    assert pid.isdecimal(), "one process of the user's"
    assert login.output(f"ps -o user:32= -p {pid}") == user
    assert f"/{UNIT}.service" in login.output(f"cat /proc/{pid}/cgroup")
    assert re.search(r"Max address space +268435456 ", login.output(f"cat /proc/{pid}/limits"))
    assert login.output(f"readlink /proc/{pid}/ns/net") == inside(login, user, "readlink /proc/self/ns/net")
    status = login.output(f"cat /proc/{pid}/status")
    for capabilities in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
        assert f"Cap{capabilities}:\t0000000000000000" in status


def test_program_that_is_killed_or_loses_its_parent_begins_again(login, user, place):
    for kill in (f"pkill -KILL -u {user} -f {UNIT}", f"systemctl kill --kill-who=main -s KILL {UNIT}"):
        before = process(login, user)
        login.output(kill)
        wait(lambda: process(login, user), lambda now, before=before: now not in ("", before), timeout_s=60)
    assert inside(login, user, fetch(place("web"))) == "mine"


def test_program_is_small(login, user, place):
    pid = process(login, user)
    lines = login.output(f"cat /proc/{pid}/smaps_rollup").splitlines()
    assert sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) < 8 << 10


def test_service_without_pods_refuses_and_one_that_is_gone_too(login, user, place, space):
    gone = place("noded", 8000)
    space.kubectl("delete service noded")
    refused = wait(lambda: ssh(login, user, fetch(gone)), lambda done: "refused" in done.stderr, timeout_s=60)
    assert refused.rc != 0
    assert inside(login, user, fetch(place("web"))) == "mine"
