"""The provider on a real OpenStack whose servers are nova's fake ones: from nothing to many of them, and back."""

import base64
import json
import subprocess

import pytest

from tests.support.clusters.openstack_site import NAME, qcow2
from tests.support.wait import wait

# More than ports are made in one call, and more than are asked for at once; twenty are tests/bench/openstack.py's.
COUNT = 10
NODES = ["ctl", "login", *(f"c{number}" for number in range(1, COUNT + 1))]


@pytest.fixture(scope="module")
def made(site):
    """All servers."""
    site.write(COUNT)
    return site.succeed("create")


def test_servers_run_with_their_addresses_and_names(made, project):
    servers = project.servers()
    assert {name: server.status for name, server in servers.items()} == {f"{NAME}-{node}": "ACTIVE" for node in NODES}
    ports = {node: project.port(f"{NAME}-{node}").fixed_ips[0]["ip_address"] for node in ("ctl", "login", "c1", "c10")}
    assert ports == {"ctl": "10.20.0.10", "login": "10.20.0.11", "c1": "10.20.0.21", "c10": "10.20.0.30"}
    data = base64.b64decode(servers[f"{NAME}-c1"].user_data).decode()
    assert "hostname: c1\n" in data
    assert "PRIVATE KEY" not in data


def test_second_run_changes_nothing(made, site):
    again = site.succeed("second")
    assert again.changed == set()


def test_inventory_has_the_groups_and_addresses_of_what_runs(made, site, project):
    found = site.inventory()
    assert found["compute"]["hosts"] == found["c"]["hosts"] == NODES[2:]
    assert [found[group]["hosts"] for group in ("controller", "login")] == [["ctl"], ["login"]]
    wanted = {node: found["_meta"]["hostvars"][node]["ansible_host"] for node in NODES}
    assert wanted == {
        name.removeprefix(f"{NAME}-"): next(iter(server.addresses.values()))[0]["addr"]
        for name, server in project.servers().items()
    }


def test_nodes_are_reached_by_way_of_the_login_node(made, site, project):
    config = site.state / f"isthmus/{NAME}/ssh/config"
    shown = subprocess.run(["ssh", "-G", "-F", config, "c2"], check=True, capture_output=True, text=True).stdout
    assert "proxyjump root@login\n" in shown
    login = subprocess.run(["ssh", "-G", "-F", config, "login"], check=True, capture_output=True, text=True).stdout
    address = next(iter(project.user.network.ips(project_id=project.id))).floating_ip_address
    assert f"hostname {address}\n" in login


def test_drift_is_mended(made, site, project):
    """A server that was deleted, one that was shelved, pairs that were taken away, a floating IP that was let go."""
    servers, user = project.servers(), project.user
    kept = project.port(f"{NAME}-c1").id
    user.compute.delete_server(servers[f"{NAME}-c1"].id)
    user.compute.shelve_server(servers[f"{NAME}-c2"].id)
    user.network.update_port(project.port(f"{NAME}-c3"), allowed_address_pairs=[])
    user.network.update_ip(next(iter(user.network.ips(project_id=project.id))), port_id=None)
    user.compute.wait_for_delete(servers[f"{NAME}-c1"], wait=60)
    wait(lambda: project.servers()[f"{NAME}-c2"].status, lambda status: status != "ACTIVE", timeout_s=60)
    mended = site.succeed("drift")
    for line in ("create server %s-c1", "start server %s-c2", "update port %s-c3", "update floating IP %s-login"):
        assert line % NAME in mended.output
    assert {server.status for server in project.servers().values()} == {"ACTIVE"}
    assert project.port(f"{NAME}-c1").id == kept
    assert site.succeed("drift_second").changed == set()


def test_more_nodes_are_made_and_leave_the_others_alone(made, site, project):
    before = {name: server.id for name, server in project.servers().items()}
    site.write(COUNT + 2)
    names = [f"c{COUNT + 1}", f"c{COUNT + 2}"]
    site.succeed("grow", provider_nodes=names)
    after = {name: server.id for name, server in project.servers().items()}
    assert after.keys() - before.keys() == {f"{NAME}-{name}" for name in names}
    assert before.items() <= after.items()
    site.remove("shrink", *names)
    assert {name: server.id for name, server in project.servers().items()} == before


def test_image_is_uploaded_once_and_kept_while_a_server_uses_it(made, site, project, tmp_path):
    """A changed disk is another image; the former one goes with the last server that was made of it."""
    for content in (1, 2):
        disk = tmp_path / f"{content}.qcow2"
        disk.write_bytes(qcow2(content))
        site.write(COUNT + 1, image_file=str(disk))
        site.succeed(f"image_{content}")
    assert len(project.listing()["images"]) == 2
    assert site.succeed("image_second").changed == set()
    site.remove("image_remove", f"c{COUNT + 1}")
    site.write(COUNT, image_file=str(disk))
    site.succeed("image_prune")
    assert len(project.listing()["images"]) == 1


def test_teardown_shows_what_it_would_remove(made, site, project):
    before = project.listing()
    checked = site.play("teardown_check", "playbooks/teardown.yml", "--check")
    assert f"delete server {NAME}-c{COUNT}" in checked.output
    assert project.listing() == before


def test_record_is_private_and_names_what_was_made(made, site):
    record = site.state / f"isthmus/{NAME}/openstack/record.json"
    assert record.stat().st_mode & 0o777 == 0o600
    rows = json.loads(record.read_text())["made"]
    assert {row["name"] for row in rows if row["kind"] == "server"} == {f"{NAME}-{node}" for node in NODES}


def test_teardown_leaves_nothing_but_what_others_made(made, site, project):
    stranger = project.user.network.create_network(name=f"{NAME}-c99")
    torn = site.play("teardown", "playbooks/teardown.yml")
    assert torn.rc == 0
    listing = project.listing()
    project.user.network.delete_network(stranger)
    assert {kind: names for kind, names in listing.items() if names} == {"networks": [f"{NAME}-c99"]}
    assert not (site.state / f"isthmus/{NAME}").exists()
    assert site.play("teardown_second", "playbooks/teardown.yml").changed == set()
