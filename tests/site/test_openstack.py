"""The provider on a real OpenStack whose servers are nova's fake ones: from nothing to twenty of them, and back."""

import base64
import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.bench import results
from tests.support.clusters.openstack_site import NAME, Project, Site, qcow2, two_regions
from tests.support.servers import openstack as box
from tests.support.wait import wait

COUNT = 18
NODES = ["ctl", "login", *(f"c{number}" for number in range(1, COUNT + 1))]
UNTOUCHED = {kind: [] for kind in ("servers", "networks", "ports", "volumes", "floating IPs", "key pairs")}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A box; it goes with the test, if that started it, and its image stays."""
    if not box.is_built():
        pytest.skip(
            f"{box.image()} is not there; left to `make test-full`, which makes it (tests/full/test_openstack.py)"
        )
    ran = box.is_running()
    inventory, state, clouds = (tmp_path_factory.mktemp(name) for name in ("inventory", "state", "clouds"))
    running = box.start(clouds)
    if any(Project(running).listing().values()):
        # Left by a test that was cut off.
        box.stop()
        running = box.start(clouds)
    site = Site(inventory, state, running)
    yield site
    results.save("openstack_tests", seconds=site.times)
    if not ran:
        box.stop()


@pytest.fixture(scope="module")
def project(site):
    return Project(site.box)


@pytest.fixture(scope="module")
def made(site, project):
    """Twenty servers."""
    site.write(COUNT)
    return site.succeed("create")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cloud": "boxx"}, "boxx was not found"),
        ({"region": "Mars"}, "Mars is not a valid region name for cloud box. Valid choices are RegionOne"),
        ({"image": "debian-31"}, "did you mean 'debian-13'"),
        ({"cidr": "203.0.113.0/24"}, "overlaps 203.0.113.0/24 of network external"),
        ({"image_file": "/nowhere/node.qcow2"}, "/nowhere/node.qcow2 is not there"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_setting_is_refused_before_anything_is_made(site, project, settings, message):
    site.write(2, **settings)
    refused = site.create("refused")
    assert refused.rc
    assert message in refused.output
    assert UNTOUCHED.items() <= project.listing().items()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (lambda text: text.replace("password: ", "password: x"), "does not accept the credentials"),
        (lambda text: text.replace("region_name: RegionOne", "region_name: Mars"), "has no region 'Mars'; it has: Reg"),
        (two_regions, "has several regions; set region to one"),
        (lambda text: text.replace(":5000", ":5001"), "cannot be asked"),
    ],
    ids=["credentials", "region", "regions", "address"],
)
def test_wrong_clouds_yaml_is_refused_and_no_password_is_shown(site, written, message):
    site.write(2)
    with site.clouds(written) as clouds:
        refused = site.create("clouds")
    assert message in refused.output
    assert clouds.split("password: ")[1].split(",")[0] not in refused.output


def test_application_credential_is_taken_until_it_is_gone(site, project):
    site.write(2)
    with site.application_credential(project, "deployer") as credential:
        assert f"create server {NAME}-c2" in site.succeed("credential", "--check").output
        project.user.identity.delete_application_credential(project.user.current_user_id, credential)
        assert "does not accept the credentials" in site.create("credential_gone").output


def test_expired_application_credential_is_refused_before_anything_is_made(site, project):
    end = datetime.now(UTC) + timedelta(seconds=2)
    with site.application_credential(project, "expiring", expires_at=end.strftime("%Y-%m-%dT%H:%M:%S.%f")):
        wait(lambda: datetime.now(UTC) > end)
        assert "does not accept the credentials" in site.create("credential_expired").output
    assert UNTOUCHED.items() <= project.listing().items()


def test_quota_that_is_too_small_is_refused(site, project):
    project.quota(instances=3)
    try:
        site.write(COUNT)
        refused = site.create("quota")
    finally:
        project.quota(instances=-1)
    assert f"instances: {COUNT + 2} more are needed, 3 of 3 are free" in refused.output
    assert UNTOUCHED.items() <= project.listing().items()


def test_check_shows_the_plan_and_makes_nothing(site, project):
    site.write(COUNT)
    checked = site.succeed("check", "--check")
    assert f"create server {NAME}-c{COUNT}" in checked.output
    assert UNTOUCHED.items() <= project.listing().items()


def test_killed_run_is_gone_on_with(site, project):
    """Killed once the network is there: nothing is made twice, and nothing is a stranger's."""
    site.write(2)
    site.kill("playbooks/create.yml", lambda: project.listing()["networks"])
    assert site.succeed("after_kill").rc == 0
    listing = project.listing()
    assert listing["networks"] == [f"{NAME}-net"]
    assert listing["key pairs"] == [f"{NAME}-key"]
    assert listing["security groups"] == [f"{NAME}-login", f"{NAME}-nodes"]
    assert site.play("after_kill_teardown", "playbooks/teardown.yml").rc == 0
    assert UNTOUCHED.items() <= project.listing().items()


def test_servers_run_with_their_addresses_and_names(made, project):
    servers = project.servers()
    assert {name: server.status for name, server in servers.items()} == {f"{NAME}-{node}": "ACTIVE" for node in NODES}
    ports = {node: project.port(f"{NAME}-{node}").fixed_ips[0]["ip_address"] for node in ("ctl", "login", "c1", "c18")}
    assert ports == {"ctl": "10.20.0.10", "login": "10.20.0.11", "c1": "10.20.0.21", "c18": "10.20.0.38"}
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


def remove(site, log, *nodes):
    """Remove nodes' machines, as playbooks/remove_nodes.yml does in the end."""
    done = site.play(log, "tests/site/files/openstack_remove.yml", variables={"nodes_names": nodes})
    assert done.rc == 0


def test_more_nodes_are_made_and_leave_the_others_alone(made, site, project):
    before = {name: server.id for name, server in project.servers().items()}
    site.write(COUNT + 2)
    names = [f"c{COUNT + 1}", f"c{COUNT + 2}"]
    site.succeed("grow", provider_nodes=names)
    after = {name: server.id for name, server in project.servers().items()}
    assert after.keys() - before.keys() == {f"{NAME}-{name}" for name in names}
    assert before.items() <= after.items()
    remove(site, "shrink", *names)
    assert {name: server.id for name, server in project.servers().items()} == before


def test_failed_server_is_named_with_what_is_there_and_replaced_by_the_next_run(made, site, project):
    site.write(COUNT + 1)
    with project.without_hypervisors():
        failed = site.create("failed")
    assert f"servers failed: {NAME}-c{COUNT + 1}: No valid host was found" in failed.output
    assert f"key pair 1, network 1, port {COUNT + 3}, router 1, " in failed.output
    replaced = site.succeed("replaced", provider_nodes=[f"c{COUNT + 1}"])
    assert f"replace server {NAME}-c{COUNT + 1}" in replaced.output
    remove(site, "replaced_remove", f"c{COUNT + 1}")


def test_image_is_uploaded_once_and_kept_while_a_server_uses_it(made, site, project, tmp_path):
    """A changed disk is another image; the former one goes with the last server that was made of it."""
    for content in (1, 2):
        disk = tmp_path / f"{content}.qcow2"
        disk.write_bytes(qcow2(content))
        site.write(COUNT + 1, image_file=str(disk))
        site.succeed(f"image_{content}")
    assert len(project.listing()["images"]) == 2
    assert site.succeed("image_second").changed == set()
    remove(site, "image_remove", f"c{COUNT + 1}")
    site.write(COUNT, image_file=str(disk))
    site.succeed("image_prune")
    assert len(project.listing()["images"]) == 1


def test_strangers_name_is_refused_and_stays(made, site, project):
    stranger = project.user.network.create_port(
        name=f"{NAME}-c{COUNT + 1}", network_id=project.port(f"{NAME}-c1").network_id
    )
    group = project.user.compute.create_server_group(name=f"{NAME}-spread", policy="anti-affinity")
    try:
        refused = site.create("stranger", _provider_openstack_spread=["ctl", "c1"])
        assert f"server group {NAME}-spread ({group.id}) exists and is not this cluster's" in refused.output
    finally:
        project.user.compute.delete_server_group(group)
        project.user.network.delete_port(stranger)


def test_other_deployer_with_the_same_name_is_refused(made, site, project, tmp_path):
    refused = replace(site, state=tmp_path).create("other_deployer")
    assert "belongs to a cluster of this name that another deployer created" in refused.output


def test_other_region_than_the_clusters_is_refused(made, site, project):
    """Else a second cluster would be made there, and the first one be forgotten."""
    site.write(COUNT, region="RegionTwo")
    with project.second_region("RegionTwo"), site.clouds(two_regions):
        refused = site.create("region")
    site.write(COUNT)
    assert "is of region 'RegionOne', the inventory chooses 'RegionTwo'; choose that region" in refused.output


def test_lost_record_is_taken_over_by_its_identity(made, site, project):
    record = site.state / f"isthmus/{NAME}/openstack/record.json"
    kept = record.read_text()
    record.unlink()
    assert site.create("lost").rc
    taken = site.succeed("taken", provider_openstack_identity=json.loads(kept)["identity"])
    assert taken.changed == set()
    record.write_text(kept)


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
