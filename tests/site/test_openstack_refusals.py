"""The provider on a real OpenStack that has not what a site asks for, or more: refused, or mended by a second run.

In a project of its own, so that it runs beside tests/site/test_openstack.py.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.clusters.openstack_site import MACHINES, NAME, two_regions
from tests.support.wait import wait

COUNT = 2
UNTOUCHED = {kind: [] for kind in ("servers", "networks", "ports", "volumes", "floating IPs", "key pairs")}


@pytest.fixture(scope="module")
def made(site, project):
    """A few servers, by a run that was killed once the network was there, and the next one."""
    site.write(COUNT)
    site.kill("playbooks/create.yml", lambda: project.listing()["networks"])
    return site.succeed("after_kill")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cloud": "boxx"}, "boxx was not found"),
        ({"region": "Mars"}, "Mars is not a valid region name for cloud box. Valid choices are RegionOne"),
        ({"image": "debian-31"}, "did you mean 'debian-13'"),
        (
            {"machines": {**MACHINES, "c": {"flavor": "hpc.smal"}}},
            "'hpc.smal'; did you mean 'hpc.small'?",
        ),
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


def test_killed_run_is_gone_on_with(made, project):
    """Nothing is made twice, and nothing is a stranger's."""
    listing = project.listing()
    assert listing["networks"] == [f"{NAME}-net"]
    assert listing["key pairs"] == [f"{NAME}-key"]
    assert listing["security groups"] == [f"{NAME}-login", f"{NAME}-nodes"]
    assert listing["servers"] == [f"{NAME}-{node}" for node in ("c1", "c2", "ctl", "login")]


def test_failed_server_is_named_with_what_is_there_and_replaced_by_the_next_run(made, site, project):
    """No hypervisor has room for such a server; the next run asks for a smaller one."""
    with project.flavor(memory_mib=2**30) as large:
        site.write(COUNT + 1, machines={**MACHINES, "c": {"flavor": large}})
        failed = site.create("failed")
    assert f"servers failed: {NAME}-c{COUNT + 1}: No valid host was found" in failed.output
    assert f"key pair 1, network 1, port {COUNT + 3}, router 1, " in failed.output
    site.write(COUNT + 1)
    replaced = site.succeed("replaced", provider_nodes=[f"c{COUNT + 1}"])
    assert f"replace server {NAME}-c{COUNT + 1}" in replaced.output


def test_strangers_name_is_refused_and_stays(made, site, project):
    stranger = project.user.network.create_port(
        name=f"{NAME}-c{COUNT + 2}", network_id=project.port(f"{NAME}-c1").network_id
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
    site.write(COUNT + 1, region="RegionTwo")
    with project.second_region("RegionTwo"), site.clouds(two_regions):
        refused = site.create("region")
    site.write(COUNT + 1)
    assert "is of region 'RegionOne', the inventory chooses 'RegionTwo'; choose that region" in refused.output


def test_lost_record_is_taken_over_by_its_identity(made, site, project):
    record = site.state / f"isthmus/{NAME}/openstack/record.json"
    kept = record.read_text()
    record.unlink()
    assert site.create("lost").rc
    taken = site.succeed("taken", provider_openstack_identity=json.loads(kept)["identity"])
    assert taken.changed == set()
    record.write_text(kept)


def test_small_site_is_removed(made, site, project):
    assert site.play("small_teardown", "playbooks/teardown.yml").rc == 0
    assert UNTOUCHED.items() <= project.listing().items()
