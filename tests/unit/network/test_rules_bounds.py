from isthmus.model.subids import END_ID, Range
from isthmus.network.node.rules_bounds import Bounds, apart, chains

BOUNDS = Bounds(flows=50, rate=5, dns=7)


def test_rate_is_asked_before_the_count_that_costs_more():
    for key, what in (("uid", "meta skuid"), ("leg", "iifname"), ("pod", "ip saddr")):
        assert chains(BOUNDS, (), ["iflannel"])[f"bound_{key}"] == [
            f"update @rates_{key} {{ {what} limit rate over 5/second burst 50 packets }} drop",
            f"add @flows_{key} {{ {what} ct count over 50 }} drop",
        ]


def test_subordinate_ids_of_a_user_are_one_account():
    found = chains(BOUNDS, [Range("bob", 165536, 65536), Range("alice", 100000, 65536)], [])
    by_range = "meta skuid vmap { 100000-165535 : goto bound_100000, 165536-231071 : goto bound_165536 }"
    assert found["bound_uid"][0] == by_range
    assert found["bound_165536"] == ["limit rate over 5/second burst 50 packets drop", "ct count over 50 drop"]


def test_ranges_that_overlap_are_cut():
    given = [Range("a", 10, 10), Range("b", 15, 10), Range("c", 16, 2), Range("d", 0, 5), Range("e", END_ID - 1, 9)]
    found = [(each.name, each.start, each.end) for each in apart(given)]
    assert found == [("d", 1, 5), ("a", 10, 20), ("b", 20, 25), ("e", END_ID - 1, END_ID)]


def test_shared_network_is_bounded_where_it_is():
    for bridges in (["iflannel"], []):
        lines = chains(BOUNDS, (), bridges)["bound_forward"]
        assert any("iflannel" in line for line in lines) is bool(bridges)


def test_questions_to_the_dns_are_bounded_for_pods_and_processes():
    found = chains(BOUNDS, [Range("bob", 165536, 65536)], ["iflannel"])
    over = "limit rate over 7/second burst 7 packets"
    assert found["dns_uid"] == [
        "meta skuid vmap { 165536-231071 : goto dns_165536 }",
        f"update @dns_uid {{ meta skuid {over} }} drop",
    ]
    assert found["dns_165536"] == [f"{over} drop"]
    assert sum("udp dport 53 iifname" in line for line in found["bound_input"]) == 2
    assert "meta skuid != 0 fib daddr type local udp dport 53 jump dns_uid" in found["bound_output"]
