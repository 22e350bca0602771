"""What a cloud does not have or allow is found before anything is made."""

from dataclasses import replace

import pytest

from isthmus.cloud.desired import desired
from isthmus.cloud.ownership import Record
from isthmus.cloud.plan import plan
from isthmus.cloud.refuse import needs, refuse
from isthmus.filters.errors import InputError
from isthmus.model.cloud import Flavor, Quota
from tests.unit.cloud.given import MARK, OFFER, VARIABLES, cloud, found, settings

MACHINES = VARIABLES["machines"]


def steps(given, there=()):
    return plan(cloud(*there), desired(given), Record("0a0b0c0d"), MARK).steps


def refused(given, **offered):
    with pytest.raises(InputError) as error:
        refuse(given, replace(OFFER, **offered), steps(given))
    return str(error.value)


@pytest.mark.parametrize(
    ("changed", "offered", "message"),
    [
        ({"machines": {**MACHINES, "c": {"flavor": "smal"}}}, {}, "unknown flavor of machines.c: 'smal'; did you mean"),
        ({"image": "debian-14"}, {}, "unknown image of machines.ctl: 'debian-14'; did you mean 'debian-13'"),
        ({"external": "publik"}, {}, "unknown network to the outside (external): 'publik'; did you mean 'public'"),
        ({"cidr": "203.0.113.0/25"}, {}, "overlaps 203.0.113.0/24 of network public"),
        ({"home_gib": 5}, {"volumes": False}, "this cloud has no block storage"),
        ({}, {"images": {"debian-13": 30}}, "machines.login: image debian-13 needs 30 GiB, there are 20"),
        (
            {},
            {"quotas": {"instances": Quota(10, 7), "cores": Quota(8, 0), "ram": Quota(-1, 0)}},
            "quota too small: cores: 10 more are needed, 8 of 8 are free; instances: 4 more are needed, 3 of 10",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(changed, offered, message):
    assert message in refused(settings(**changed), **offered)


def test_boot_volume_may_be_larger_than_the_flavors_disk():
    given = settings(boot_gib=40)
    refuse(
        given, replace(OFFER, images={"debian-13": 30}, flavors={"small": Flavor(1, 1, 0), "big": Flavor(1, 1, 0)}), []
    )


def test_steps_are_counted_against_each_quota():
    given = settings(home_gib=50, boot_gib=10, spread=["ctl", "c1"])
    assert dict(needs(given, OFFER.flavors, steps(given))) == {
        "key_pairs": 1,
        "server_groups": 1,
        "networks": 1,
        "subnets": 1,
        "routers": 1,
        "security_groups": 2,
        "security_group_rules": 6,
        "ports": 5,
        "instances": 4,
        "cores": 10,
        "ram": 8192 + 3 * 4096,
        "floating_ips": 1,
        "volumes": 5,
        "gigabytes": 90,
    }


def test_what_is_there_counts_no_more():
    given = settings()
    there = [found(one) for one in desired(given) if one.name != "hpc-c2"]
    record = Record("0a0b0c0d", begun=frozenset((one.kind, one.name) for one in there))
    left = plan(cloud(*there), desired(given), record, MARK).steps
    assert dict(needs(given, OFFER.flavors, left)) == {"instances": 1, "ports": 1, "cores": 2, "ram": 4096}
