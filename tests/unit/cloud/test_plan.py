"""From what is there to steps: nothing twice, nothing of others, nothing that loses what a node holds."""

from dataclasses import replace

import pytest

from isthmus.cloud.desired import desired
from isthmus.cloud.ownership import Record
from isthmus.cloud.plan import plan, removal, waves
from isthmus.filters.errors import InputError
from isthmus.model.cloud import WAVES, Found, Kind, Made, Verb
from tests.unit.cloud.given import MARK, NODES, cloud, found, settings

WANTED = desired(settings())
EMPTY = Record("0a0b0c0d")
# What an API wants to be there before a kind.
NEEDS = {
    Kind.SUBNET: [Kind.NETWORK],
    Kind.ROUTER: [Kind.SUBNET],
    Kind.PORT: [Kind.SUBNET, Kind.SECURITY_GROUP],
    Kind.FLOATING_IP: [Kind.PORT, Kind.ROUTER],
    Kind.SERVER: [Kind.PORT, Kind.KEY_PAIR, Kind.SERVER_GROUP, Kind.VOLUME, Kind.IMAGE],
}
THERE = [found(one) for one in WANTED]
WHOLE = EMPTY.with_made(Made(one.kind, one.name, one.id) for one in THERE)


def changed(kind, name, **what):
    return [replace(one, **what) if (one.kind, one.name) == (kind, name) else one for one in THERE]


def steps(there, wanted=WANTED, record=WHOLE):
    return [(step.verb, step.kind, step.name) for step in plan(cloud(*there), wanted, record, MARK).steps]


def test_empty_cloud_gets_everything_in_an_order_that_works():
    made = [{step.kind for step in wave} for wave in plan(cloud(), WANTED, EMPTY, MARK).waves()]
    at = {kind: number for number, wave in enumerate(made) for kind in wave}
    assert sum(map(len, made)) == len(at)
    for kind, needed in NEEDS.items():
        assert all(at[one] < at[kind] for one in needed if one in at), kind
    assert len(steps([], record=EMPTY)) == len(WANTED)


def test_whole_cluster_goes_in_the_reverse_order():
    order = [step.kind for wave in waves(removal(cloud(*THERE), WHOLE, MARK), reversed(WAVES)) for step in wave]
    assert len(order) == len(WANTED)
    for kind, needed in NEEDS.items():
        assert all(order.index(one) > len(order) - 1 - order[::-1].index(kind) for one in needed if one in order), kind


def test_whole_cluster_needs_nothing():
    assert steps(THERE) == []


@pytest.mark.parametrize(
    ("kind", "name", "what", "verb"),
    [
        (Kind.SERVER, "hpc-c1", {"status": "SHELVED_OFFLOADED"}, Verb.START),
        (Kind.SERVER, "hpc-c1", {"status": "SHUTOFF"}, Verb.START),
        (Kind.SERVER, "hpc-c1", {"status": "ERROR"}, Verb.REPLACE),
        (Kind.PORT, "hpc-c1", {"settings": {"pairs": []}}, Verb.UPDATE),
        (Kind.SECURITY_GROUP, "hpc-login", {"settings": {"rules": []}}, Verb.UPDATE),
        (Kind.ROUTER, "hpc-router", {"settings": {"external": "public", "subnet": ""}}, Verb.UPDATE),
        (Kind.FLOATING_IP, "hpc-login", {"settings": {"port": ""}}, Verb.UPDATE),
        (Kind.KEY_PAIR, "hpc-key", {"settings": {"public_key": "another"}}, Verb.UPDATE),
    ],
)
def test_drift_is_mended_in_one_step(kind, name, what, verb):
    assert steps(changed(kind, name, **what)) == [(verb, kind, name)]


@pytest.mark.parametrize("status", ["BUILD", "REBOOT", "RESIZE", "MIGRATING"])
def test_server_that_is_busy_is_left_alone(status):
    assert steps(changed(Kind.SERVER, "hpc-c1", status=status)) == []


def test_server_that_somebody_deleted_is_made_and_keeps_its_port():
    left = [one for one in THERE if (one.kind, one.name) != (Kind.SERVER, "hpc-c1")]
    assert steps(left) == [(Verb.CREATE, Kind.SERVER, "hpc-c1")]


def test_named_nodes_alone_are_made_and_others_are_no_strangers():
    left = [one for one in THERE if one.name not in ("hpc-c1", "hpc-c2")]
    reported = plan(cloud(*left), WANTED, WHOLE, MARK, ["hpc-c2"])
    assert [(step.kind, step.name) for step in reported.steps] == [(Kind.PORT, "hpc-c2"), (Kind.SERVER, "hpc-c2")]
    assert reported.notes == []


def test_address_of_a_former_entry_is_given_back():
    other = [replace(one, name="hpc-login2") if one.kind is Kind.FLOATING_IP else one for one in WANTED]
    assert steps(THERE, other) == [
        (Verb.CREATE, Kind.FLOATING_IP, "hpc-login2"),
        (Verb.DELETE, Kind.FLOATING_IP, "hpc-login"),
    ]


def test_other_flavor_is_a_note_and_no_step():
    there = changed(Kind.SERVER, "hpc-c1", settings={"flavor": "old", "image": ""})
    reported = plan(cloud(*there), WANTED, WHOLE, MARK)
    assert not reported.steps
    assert reported.notes == [
        "hpc-c1 keeps its flavor old, the inventory has small: remove_nodes and add_nodes replace it"
    ]


def test_node_that_left_the_inventory_is_a_note_and_stays():
    gone = [one for one in WANTED if one.name != "hpc-c2"]
    reported = plan(cloud(*THERE), gone, WHOLE, MARK)
    assert not reported.steps
    assert reported.notes == ["hpc-c2 is not in the inventory and stays: remove_nodes removes nodes"]


@pytest.mark.parametrize(
    ("kind", "name", "what", "message"),
    [
        (Kind.SUBNET, "hpc-net", {"settings": {"cidr": "10.9.0.0/24"}}, "tear the cluster down first"),
        (Kind.PORT, "hpc-c1", {"settings": {"address": "10.20.0.9"}}, "put the old value back"),
        (Kind.SERVER, "hpc-c1", {"mark": ""}, "server hpc-c1 (id-server-hpc-c1) exists and is not this cluster's"),
        (Kind.SERVER, "hpc-c1", {"mark": "isthmus.hpc2.0a0b0c0d"}, "exists and is not this cluster's"),
        (Kind.NETWORK, "hpc-net", {"mark": "isthmus.hpc.ffffffff"}, "provider_openstack_identity: ffffffff"),
    ],
)
def test_what_cannot_be_done_is_refused(kind, name, what, message):
    with pytest.raises(InputError) as refused:
        steps(changed(kind, name, **what))
    assert message in str(refused.value)


def test_key_pair_that_is_not_in_the_record_is_a_strangers():
    with pytest.raises(InputError, match=r"key pair hpc-key .* exists and is not this cluster's"):
        steps(THERE, record=WHOLE.without([(Kind.KEY_PAIR, "hpc-key")]))


def test_key_pair_that_a_killed_run_began_is_ours():
    begun = replace(WHOLE.without([(Kind.KEY_PAIR, "hpc-key")]), begun=frozenset({(Kind.KEY_PAIR, "hpc-key")}))
    assert steps(THERE, record=begun) == []


def test_volume_grows_and_does_not_shrink():
    wanted = desired(settings(home_gib=20))
    there = [found(one) for one in wanted]
    small, large = (
        [replace(one, settings={"gib": size}) if one.kind is Kind.VOLUME else one for one in there] for size in (10, 30)
    )
    assert steps(small, wanted) == [(Verb.UPDATE, Kind.VOLUME, "hpc-home")]
    with pytest.raises(InputError, match="volumes grow only"):
        steps(large, wanted)


def test_old_image_goes_when_no_server_uses_it():
    wanted = desired(settings(image_file="/node.qcow2", image_digest="b" * 64))
    old = Found(Kind.IMAGE, "id-old", "isthmus-node-" + "a" * 16, MARK, "active")
    there = [found(one) for one in wanted]
    user = replace(there[-2], settings={**there[-2].settings, "image": old.name})
    assert steps([*there, old], wanted) == [(Verb.DELETE, Kind.IMAGE, old.name)]
    assert steps([*there[:-2], user, there[-1], old], wanted) == []


def test_removal_takes_what_is_ours_and_nothing_else():
    foreign = [
        Found(Kind.SERVER, "x1", "hpc-c9", "", "ACTIVE"),
        Found(Kind.SERVER, "x2", "hpc-c1", "isthmus.hpc.ffffffff", "ACTIVE"),
        Found(Kind.KEY_PAIR, "x3", "hpc-other"),
        Found(Kind.NETWORK, "x4", "hpc-net", "somebody's"),
    ]
    gone = removal(cloud(*THERE, *foreign), WHOLE, MARK)
    assert {step.found.id for step in gone} == {one.id for one in THERE}
    kinds = [step.kind for step in gone]
    assert kinds == sorted(kinds, key=list(Kind).index, reverse=True)


def test_removal_of_nodes_takes_their_machines_alone():
    named = [(Kind.SERVER, "hpc-c2"), (Kind.PORT, "hpc-c2")]
    gone = removal(cloud(*THERE), WHOLE, MARK, named)
    assert [(step.kind, step.name) for step in gone] == named


def test_removal_may_leave_the_homes():
    wanted = desired(settings(home_gib=20))
    there = cloud(*map(found, wanted))
    all_of_it, but_homes = (removal(there, WHOLE, MARK, keep_volumes=keep) for keep in (False, True))
    assert {step.name for step in all_of_it} - {step.name for step in but_homes} == {"hpc-home"}


def test_server_that_slurm_started_is_neither_made_nor_missed():
    machines = {
        "ctl": {"flavor": "big"},
        "login": {"flavor": "small"},
        "c": {"flavor": "small"},
        "b": {"flavor": "big"},
    }
    coming = {"group": "compute", "count": 1, "at": 40, "cloud": True}
    wanted = desired(settings(nodes={**NODES, "b": coming}, machines=machines))
    server = Found(Kind.SERVER, "s1", "hpc-b1", MARK, "ACTIVE")
    made = plan(cloud(*map(found, wanted), server), wanted, WHOLE, MARK)
    assert not [one for one in made.notes if "b1" in one]
    assert not [step for step in made.steps if step.kind is Kind.SERVER]


def test_other_deployers_cluster_is_named_before_its_key_pair_that_has_no_mark():
    """Else its admin would read that he is to remove the key pair of a cluster that runs."""
    record = Record("0f0f0f0f", "p1")
    there = [found(one) for one in desired(settings())]
    with pytest.raises(InputError, match="another deployer created"):
        plan(cloud(*there), desired(settings()), record, "isthmus.hpc.0f0f0f0f")
