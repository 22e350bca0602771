"""Who gets which address."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Job, Lease, Ranges, State, User
from isthmus.network.node.nodelist import unfold
from isthmus.network.state import ipam

RANGES = Ranges(IPv4Network("10.64.0.0/16"), 24, 4096, 4099)
ALICE = 1001


def at(number):
    return IPv4Address("10.64.0.0") + number


def request(job=1, nodes="c[1-2]", uid=ALICE, reservation=""):
    return ipam.Request(job, uid, f"user{uid}", "run", unfold(nodes), reservation)


def state(*results, leases=()):
    """Return what etcd knows after some results were written in turn."""
    return State(
        users={result.user.uid: result.user for result in results},
        jobs={result.job.id: result.job for result in results if isinstance(result, ipam.Taken)},
        leases={(uid, node): Lease(uid, node, 0) for uid, node in leases},
    )


FIRST = ipam.take(State(), RANGES, request())


def test_new_user_gets_a_vni_a_block_and_legs():
    assert FIRST.user == User(
        ALICE, "user1001", 4096, (IPv4Network("10.64.0.0/24"),), {"c1": at(3), "c2": at(4)}, {}, at(4)
    )
    assert FIRST.job == Job(1, ALICE, "run", Driver.PRIVATE, ("c1", "c2"), (at(1), at(2)))
    assert (FIRST.grew, FIRST.new) == (True, True)


def test_next_job_uses_the_legs_and_goes_on_after_the_cursor():
    taken = ipam.take(state(FIRST), RANGES, request(2, "c[2-3]"))
    assert taken.job.addresses == (at(5), at(6))
    assert taken.user.legs == {"c1": at(3), "c2": at(4), "c3": at(7)}
    assert (taken.grew, taken.new) == (False, True)


def test_second_user_gets_another_vni_and_block():
    taken = ipam.take(state(FIRST), RANGES, request(2, uid=1002))
    assert (taken.user.vni, taken.user.blocks) == (4097, (IPv4Network("10.64.1.0/24"),))
    assert taken.grew


def test_same_request_takes_nothing_new():
    again = ipam.take(state(FIRST), RANGES, request())
    assert again == replace(FIRST, grew=False, new=False)


def test_job_that_asks_without_its_name_keeps_it():
    again = ipam.take(state(FIRST), RANGES, replace(request(), name=""))
    assert (again.job.name, again.new) == ("run", False)


def test_requeued_job_gets_other_addresses_and_drops_its_old_legs():
    taken = ipam.take(state(FIRST), RANGES, request(1, "c[2-3]"))
    assert taken.job.addresses == (at(5), at(6))
    assert taken.user.legs == {"c2": at(4), "c3": at(7)}


def test_requeued_jobs_old_leg_stays_with_another_job_or_a_lease():
    second = ipam.take(state(FIRST), RANGES, request(2, "c1"))
    taken = ipam.take(state(FIRST, second), RANGES, request(1, "c3"))
    assert set(taken.user.legs) == {"c1", "c3"}
    taken = ipam.take(state(FIRST, leases=[(ALICE, "c2")]), RANGES, request(1, "c3"))
    assert set(taken.user.legs) == {"c2", "c3"}


def test_job_id_of_another_user_is_replaced():
    taken = ipam.take(state(FIRST), RANGES, request(uid=1002))
    assert (taken.job.uid, taken.user.uid, taken.new) == (1002, 1002, True)
    assert taken.job.addresses == (at(257), at(258))


def test_freed_address_rests_until_the_others_had_their_turn():
    ranges = replace(RANGES, block_prefix=28)
    known, given = state(ipam.take(State(), ranges, request(1, "c1"))), []
    for job in range(2, 16):
        taken = ipam.take(known, ranges, request(job, "c1"))
        given.append(taken.job.addresses[0])
        # The job before it ends at once.
        known = State(users={ALICE: taken.user}, jobs={job: taken.job})
    assert given == [at(number) for number in (*range(3, 15), 1, 3)]
    assert taken.user.blocks == (IPv4Network("10.64.0.0/28"),)


def test_blocks_double_when_they_are_full():
    ranges, known = replace(RANGES, block_prefix=29), State()
    for job in range(1, 40):
        taken = ipam.take(known, ranges, request(job, "c1"))
        known = State(users={ALICE: taken.user}, jobs={**known.jobs, job: taken.job})
    assert [block.prefixlen for block in taken.user.blocks] == [29, 29, 28, 27]
    assert len({job.addresses for job in known.jobs.values()}) == 39


def test_known_user_who_takes_a_block_grew():
    """What grew is guarded against other users, who might take the same block."""
    ranges = replace(RANGES, block_prefix=30)
    full = state(ipam.take(State(), ranges, request(1, "c1")))
    taken = ipam.take(full, ranges, request(2, "c1"))
    leased = ipam.lease(full, ranges, ALICE, "alice", "login")
    kept = ipam.reserve(full, ranges, ALICE, "alice", "web")
    assert [len(each.user.blocks) for each in (taken, leased, kept)] == [2, 2, 2]
    assert (taken.grew, leased.grew, kept.grew) == (True, True, True)


def test_job_that_names_another_reservation_is_given_its_address():
    kept = ipam.reserve(state(FIRST), RANGES, ALICE, "alice", "web")
    taken = ipam.take(state(FIRST, kept), RANGES, request(1, reservation="web"))
    assert (taken.job.addresses[0], taken.job.reservation) == (kept.address, "web")


def test_reservation_keeps_its_address_for_the_first_node_of_a_job_naming_it():
    kept = ipam.reserve(state(FIRST), RANGES, ALICE, "alice", "web")
    assert kept.address == at(5)
    known = state(FIRST, kept)
    taken = ipam.take(known, RANGES, request(2, "c[1-2]", reservation="web"))
    assert taken.job.addresses == (at(5), at(6))
    assert ipam.take(known, RANGES, request(3, "c1")).job.addresses == (at(6),)
    assert ipam.reserve(known, RANGES, ALICE, "alice", "web") == replace(kept, new=False)


def test_reservation_is_free_again_when_its_job_ended():
    kept = ipam.reserve(State(), RANGES, ALICE, "alice", "web")
    taken = ipam.take(state(kept), RANGES, request(2, "c1", reservation="web"))
    busy, ended = state(kept, taken), State(users={ALICE: taken.user})
    with pytest.raises(ipam.ReservationBusyError, match="job 2's; wait"):
        ipam.take(busy, RANGES, request(3, "c2", reservation="web"))
    assert ipam.take(ended, RANGES, request(3, "c2", reservation="web")).job.addresses == (kept.address,)
    assert ipam.take(busy, RANGES, request(2, "c3", reservation="web")).job.addresses == (kept.address,)


def test_unreserved_address_stays_with_its_job():
    kept = ipam.reserve(State(), RANGES, ALICE, "alice", "web")
    taken = ipam.take(state(kept), RANGES, request(2, "c1", reservation="web"))
    known = State(users={ALICE: replace(ipam.unreserve(taken.user, "web"), cursor=None)}, jobs={2: taken.job})
    assert kept.address not in ipam.take(known, RANGES, request(3, "c[1-3]")).job.addresses
    assert ipam.unreserve(taken.user, "none") == taken.user


def test_unknown_reservation_is_refused():
    with pytest.raises(ipam.NotReservedError, match="no reservation web; reserve it"):
        ipam.take(state(FIRST), RANGES, request(2, reservation="web"))


def test_reservations_are_bounded():
    user = User(ALICE, "alice", 4096, reserved={f"s{number}": at(number) for number in range(ipam.RESERVED_MAX)})
    with pytest.raises(ipam.TooManyReservedError):
        ipam.reserve(State(users={ALICE: user}), RANGES, ALICE, "alice", "web")


def test_lease_gives_a_leg_once():
    given = ipam.lease(state(FIRST), RANGES, ALICE, "alice", "login")
    assert (given.address, given.grew, given.new) == (at(5), False, True)
    assert given.user.legs == {**FIRST.user.legs, "login": at(5)}
    assert ipam.lease(state(given), RANGES, ALICE, "alice", "login") == replace(given, new=False)


def test_lease_of_a_new_user_takes_vni_and_block():
    given = ipam.lease(State(), RANGES, ALICE, "alice", "login")
    assert (given.address, given.grew, given.user.vni) == (at(1), True, 4096)


def test_used_up_range_is_named_with_the_remedy():
    ranges = replace(RANGES, pods=IPv4Network("10.64.0.0/29"), block_prefix=29)
    with pytest.raises(ipam.RangeFullError, match=r"10\.64\.0\.0/29 is used up: user1001 needs 8 more .*larger pod"):
        ipam.take(State(), ranges, request(nodes="c[1-4]"))


def test_used_up_vnis_are_named_with_the_remedy():
    users = {uid: User(uid, f"u{uid}", 4096 + uid) for uid in range(4)}
    with pytest.raises(ipam.VnisFullError, match=r"from 4096 to 4099 .* wider range"):
        ipam.take(State(users=users), RANGES, request())


def test_job_of_flannel_takes_a_user_and_no_address():
    taken = ipam.note(State(), RANGES, replace(request(), driver=Driver.FLANNEL))
    assert taken.user == User(ALICE, "user1001", 4096)
    assert taken.job == Job(1, ALICE, "run", Driver.FLANNEL, ("c1", "c2"), ())
    assert (taken.grew, taken.new) == (True, True)
    again = ipam.note(state(taken), RANGES, replace(request(), driver=Driver.FLANNEL))
    assert again == replace(taken, grew=False, new=False)


def test_job_that_was_private_gives_its_legs_back_with_flannel():
    leased = ipam.note(state(FIRST, leases=[(ALICE, "c2")]), RANGES, replace(request(), driver=Driver.FLANNEL))
    assert leased.user == replace(FIRST.user, legs={"c2": at(4)})
    back = ipam.take(state(leased), RANGES, request())
    assert back.job.driver == Driver.PRIVATE
    assert back.user.legs.keys() == {"c1", "c2"}


def test_flannel_knows_no_reservations():
    with pytest.raises(ipam.NotReservedError, match="private network; leave it out"):
        ipam.note(State(), RANGES, replace(request(reservation="web"), driver=Driver.FLANNEL))
