import json
import time


def test_names_resolve_everywhere(nodes):
    addresses = [node.variables["base_address"] for node in nodes.values()]
    for node in nodes.values():
        found = node.output(f"for name in {' '.join(nodes)}; do getent ahostsv4 $name | head -n 1; done")
        assert [line.split()[0] for line in found.splitlines()] == addresses


def test_host_bears_its_name(nodes):
    assert {name: node.output("hostname") for name, node in nodes.items()} == {name: name for name in nodes}


def test_fuse_is_open_to_users(nodes):
    modes = {name: node.output("stat -c '%a %U' /dev/fuse") for name, node in nodes.items()}
    assert set(modes.values()) == {"666 root"}


def test_cluster_identity_is_the_same_everywhere(nodes):
    assert len({node.output("cat /etc/isthmus/cluster.json") for node in nodes.values()}) == 1


def test_cluster_identity_may_not_be_changed_by_users(nodes, user):
    for node in nodes.values():
        assert node.output("stat -c '%a %U' /etc/isthmus/cluster.json") == "644 root"
        assert node.try_as(user, "echo > /etc/isthmus/cluster.json").rc != 0


def test_isthmus_info_in_a_login_shell(login, user, cluster):
    info = json.loads(login.run_as(user, "isthmus info --json"))
    assert info["schema"] == 1
    assert info["name"] == cluster.controller.variables["name"]
    assert info["id"] == json.loads(login.output("cat /etc/isthmus/cluster.json"))["id"]


def clock(node):
    """Return the least and the most that a host's clock may be ahead of this one; asking takes its time."""
    before, shown, after = time.monotonic(), float(node.output("date +%s.%N")), time.monotonic()
    return shown - after, shown - before


def test_clocks_agree(nodes):
    least, most = zip(*map(clock, nodes.values()), strict=True)
    assert max(least) - min(most) <= 5
