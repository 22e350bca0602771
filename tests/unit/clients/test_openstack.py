"""What openstacksdk gives and takes, against what plans speak of; tests/site talks to the real APIs."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import pytest
from keystoneauth1 import exceptions as keystone
from keystoneauth1.session import Session
from openstack.exceptions import HttpException

from isthmus.clients.openstack import change, connection, look
from isthmus.clients.openstack.connection import CloudError, calls, connect
from isthmus.model.cloud import Kind

IDS = {(Kind.SECURITY_GROUP, "hpc-nodes"): "g1"}
RULES = [
    ("egress", "IPv6", "-", "-", "-"),
    ("ingress", "IPv4", "tcp", "22", "192.0.2.0/24"),
    ("ingress", "IPv4", "udp", "100-200", "0.0.0.0/0"),
    ("ingress", "IPv4", "-", "-", "group hpc-nodes"),
]


@pytest.mark.parametrize("rule", RULES)
def test_rule_that_was_made_is_read_as_it_was_wanted(rule):
    assert look._rule(change._rule(rule, IDS), {"g1": "hpc-nodes"}) == rule


SERVER = {
    "id": "s1",
    "name": "hpc-c1",
    "status": "ERROR",
    "metadata": {"isthmus": "isthmus.hpc.0a"},
    "flavor": SimpleNamespace(original_name="small", name=None),
    "image": SimpleNamespace(id="i1"),
    "addresses": {"hpc-net": [{"addr": "10.20.0.21"}]},
    "fault": {"message": "No valid host"},
}


def test_server_is_read_with_its_fault_and_whose_it_is():
    found = look.read_server(SimpleNamespace(**SERVER), {"i1": "debian-13"})
    assert (found.mark, found.status) == ("isthmus.hpc.0a", "ERROR")
    assert found.settings == {
        "flavor": "small",
        "image": "debian-13",
        "addresses": ["10.20.0.21"],
        "fault": "No valid host",
    }


def test_fault_that_a_list_lacks_is_asked_for():
    """As nova answers for a server that no hypervisor took."""
    alone = SimpleNamespace(**SERVER | {"fault": {"message": "No valid host was found. "}})
    cloud = SimpleNamespace(compute=SimpleNamespace(get_server={"s1": alone}.__getitem__))
    listed = look.read_server(SimpleNamespace(**SERVER | {"fault": None}), {})
    assert change.Changes(cloud, "").fault(listed) == "No valid host was found"


@pytest.mark.parametrize(
    ("image", "gib"),
    [((0, 0, 2**30 + 1), 2), ((10, 0, 2**30), 10), ((0, 3 * 2**30, 2**20), 3), ((None, None, None), 0)],
    ids=["size", "least disk", "virtual size", "nothing known"],
)
def test_disk_that_an_image_needs(image, gib):
    least, virtual, size = image
    assert look._image_gib(SimpleNamespace(min_disk=least, virtual_size=virtual, size=size)) == gib


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (HttpException(message="x", http_status=403, details="Quota exceeded"), r"making c1 failed \(403\): Quota"),
        (keystone.ConnectFailure("no route"), "making c1 failed: no route; run it again"),
    ],
)
def test_error_of_a_call_says_what_was_tried(error, message):
    with pytest.raises(CloudError, match=message), calls("making c1"):
        raise error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (keystone.Unauthorized("no"), "does not accept the credentials: no"),
        (keystone.NotFound("Could not find Application Credential: 8e."), "does not accept the credentials: Could"),
        (keystone.NotFound("Not Found"), "cannot be asked: Not Found"),
        (keystone.ConnectFailure("no route"), "cannot be asked: no route"),
    ],
)
def test_error_of_a_login_says_whether_the_credentials_are_wrong(error, message):
    with pytest.raises(CloudError, match=message), connection._as_cloud_errors("mine"):
        raise error


CREDENTIALS = "the credentials have expired or were deleted: create a new application credential"


@pytest.mark.parametrize(
    "error", [keystone.Unauthorized("no"), keystone.NotFound("Could not find Application Credential: 8e.")]
)
def test_credentials_that_expire_within_a_run_are_named(error):
    with pytest.raises(CloudError, match=rf"making c1 failed: .*; {CREDENTIALS}.*; run it again"), calls("making c1"):
        raise error


OTHERS = {"image": SimpleNamespace(find_image=None), "network": SimpleNamespace(find_network=None)}


class FakeNova:
    """Lists servers; a limit, with which the library asks twice, it does not know."""

    def __init__(self):
        self.asked, self.found = [], []

    def servers(self, *, details, status=None):
        self.asked.append((details, status))
        return [SimpleNamespace(name=name) for name in ("hpc-c1", "hpc-c2", "other") if status in (None, "BUILD")]

    def find_flavor(self, name, *, ignore_missing):
        assert not ignore_missing
        self.found.append(name)
        return SimpleNamespace(id=f"id-{name}")


def test_list_of_names_has_no_details_and_no_strangers():
    nova = FakeNova()
    changes = change.Changes(SimpleNamespace(compute=nova), "")
    assert changes.listed(["hpc-c1", "hpc-c2", "hpc-c3"]) == {"hpc-c1", "hpc-c2"}
    assert changes.listed(["hpc-c2"], "BUILD") == {"hpc-c2"}
    assert nova.asked == [(False, None), (False, "BUILD")]


def test_slow_question_about_one_flavor_holds_nobody_up():
    """A cloud that makes servers is busy, and answers late."""
    answered = Event()

    class Busy(FakeNova):
        def find_flavor(self, name, *, ignore_missing):
            assert name != "large" or answered.wait(10)
            return super().find_flavor(name, ignore_missing=ignore_missing)

    changes = change.Changes(SimpleNamespace(compute=Busy(), **OTHERS), "")
    with ThreadPoolExecutor(2) as pool:
        large = pool.submit(changes._id, "flavor", "large")
        try:
            assert pool.submit(changes._id, "flavor", "small").result(5) == "id-small"
        finally:
            answered.set()
        assert large.result(5) == "id-large"


def test_what_a_look_has_shown_is_not_asked_for():
    changes = change.Changes(SimpleNamespace(compute=None), "", {("flavor", "small"): "f1"})
    assert changes._id("flavor", "small") == "f1"


def test_name_that_several_images_have_is_not_chosen_among():
    """The library refuses it then, by its own words."""
    images = [SimpleNamespace(id=id_, name=name) for id_, name in (("i1", "debian-13"), ("i2", "old"), ("i3", "old"))]
    assert look._ids("image", images) == {("image", "debian-13"): "i1"}


def test_flavor_is_asked_for_once_by_all_threads():
    nova = FakeNova()
    changes = change.Changes(SimpleNamespace(compute=nova, **OTHERS), "")
    with ThreadPoolExecutor(8) as pool:
        found = {*pool.map(lambda _: changes._id("flavor", "small"), range(32))}
    assert (found, nova.found) == ({"id-small"}, ["small"])


TWO = "clouds: {mine: {auth: {auth_url: 'http://127.0.0.1:1/v3'}, regions: [north, {name: south}]}}\n"


@pytest.mark.parametrize(
    ("text", "region", "message"),
    [
        (TWO, "", r"cloud 'mine' has several regions; set region to one of them: north, south"),
        (TWO, "west", r"Region west is not a valid region name for cloud mine\. Valid choices are north,south"),
        (
            "clouds: {mine: [\n",
            "",
            r"mine was not found; clouds\.yaml has: nothing: there is none, or it is no YAML",
        ),
        ("clouds: {}\n", "", r"Cloud mine was not found; clouds\.yaml has: "),
        ("- mine\n", "", r"not a valid mapping; clouds\.yaml has: nothing"),
    ],
    ids=["none chosen", "unknown region", "no YAML", "no cloud", "no mapping"],
)
def test_clouds_yaml_that_does_not_say_which_is_refused_before_a_call(tmp_path, monkeypatch, text, region, message):
    clouds = tmp_path / "clouds.yaml"
    clouds.write_text(text)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    monkeypatch.setattr(Session, "get_token", pytest.fail)
    with pytest.raises(CloudError, match=message):
        connect("mine", region)


def test_one_of_several_clouds_must_be_chosen(tmp_path, monkeypatch):
    clouds = tmp_path / "clouds.yaml"
    one = "{auth: {auth_url: 'http://127.0.0.1:1/v3', username: ada, password: secret, project_name: hpc}}"
    clouds.write_text(f"clouds: {{mine: {one}, yours: {one}}}\n")
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    monkeypatch.setattr(Session, "get_token", pytest.fail)
    with pytest.raises(CloudError, match=r"lacks something: .*auth_url.*, or set cloud; clouds\.yaml has: mine, yours"):
        connect("", "")


CATALOG = [{"type": "compute", "endpoints": [{"region_id": "north"}, {"region_id": "south"}]}, {"type": "image"}]


@pytest.mark.parametrize(
    ("region", "catalog", "message"),
    [
        (None, CATALOG, "cloud 'mine' has several regions; set region to one of them: north, south"),
        ("west", CATALOG, "cloud 'mine' has no region 'west'; it has: north, south"),
        ("west", [], "cloud 'mine' has no region 'west'; it has: none"),
    ],
)
def test_region_that_the_catalog_does_not_have_is_refused(region, catalog, message):
    config = SimpleNamespace(get_region_name=lambda: region)
    with pytest.raises(CloudError, match=message):
        connection._refuse_region(SimpleNamespace(config=config, service_catalog=catalog), "mine")


def test_one_region_need_not_be_chosen():
    config = SimpleNamespace(get_region_name=lambda: None)
    only = [{"type": "compute", "endpoints": [{"region_id": "north"}, {"region_id": "north"}]}]
    connection._refuse_region(SimpleNamespace(config=config, service_catalog=only), "mine")


def test_unknown_cloud_is_refused_with_those_there_are(tmp_path, monkeypatch):
    clouds = tmp_path / "clouds.yaml"
    clouds.write_text("clouds: {mine: {auth: {auth_url: 'http://127.0.0.1:1/v3'}}}\n")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    with pytest.raises(CloudError, match=r"cloud 'mein': Cloud mein was not found; clouds\.yaml has: mine"):
        connect("mein", "")
