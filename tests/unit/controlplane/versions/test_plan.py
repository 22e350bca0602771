"""Which images a start goes through: tables, and all that can be drawn."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.controlplane.versions.plan import Image, RefusedError, Versions, ordered, plan
from isthmus.model import skew

ETCDS = {"1.35.4": "3.5.30", "1.36.1": "3.6.14", "1.36.3": "3.6.14", "1.37.2": "3.6.14", "1.38.0": "3.7.3"}


def image(kubernetes, etcd=""):
    found = etcd or ETCDS.get(kubernetes, "3.7.3")
    return Image(Path(f"/share/control-plane-{kubernetes}-{found}-0.squashfs"), kubernetes, found)


def data(kubernetes, etcd=""):
    return image(kubernetes, etcd).versions


def way(before, there, **options):
    found = plan(data(before) if before else None, [image(each) for each in there], **options)
    return [step.kubernetes for step in found.steps]


@pytest.mark.parametrize(
    ("before", "there", "wanted", "steps"),
    [
        ("", ["1.36.3", "1.38.0"], "", ["1.38.0"]),
        ("", ["1.36.3", "1.38.0"], "1.36", ["1.36.3"]),
        ("1.36.3", ["1.36.3"], "", ["1.36.3"]),
        ("1.36.1", ["1.36.1", "1.36.3"], "", ["1.36.3"]),
        ("1.36.1", ["1.36.1", "1.36.3"], "1.36.1", ["1.36.1"]),
        ("1.36.3", ["1.36.1", "1.37.2"], "1.36", ["1.36.1"]),
        ("1.36.3", ["1.36.3", "1.37.2"], "", ["1.37.2"]),
        ("1.35.4", ["1.36.1", "1.36.3", "1.37.2", "1.38.0"], "", ["1.36.3", "1.37.2", "1.38.0"]),
        ("1.35.4", ["1.36.1", "1.36.3", "1.37.2", "1.38.0"], "1.37", ["1.36.3", "1.37.2"]),
        # The newest cannot be reached; what can be is nearer to it.
        ("1.35.4", ["1.36.1", "1.36.3", "1.38.0"], "", ["1.36.3"]),
    ],
)
def test_way(before, there, wanted, steps):
    assert way(before, there, wanted=wanted) == steps


@pytest.mark.parametrize(
    ("before", "there", "wanted", "words"),
    [
        ("1.36.3", ["1.36.3"], "1.37", r"has no Kubernetes 1.37; choose from 1.36.3, or ask an admin for 1.37 \(kube"),
        ("1.37.2", ["1.36.3", "1.37.2"], "1.36", "1.36.3 cannot read them; stay with 1.37, or begin empty after `isth"),
        ("1.37.2", ["1.36.3"], "", "1.36.3 cannot read them; ask an admin for 1.37 "),
        ("1.36.3", ["1.38.0"], "", "one minor release at a time; this site lacks 1.37: ask an admin for it "),
        ("1.35.4", ["1.35.4", "1.38.0"], "1.38", "this site lacks 1.36, 1.37: ask an admin for them "),
        ("1.36.3", ["1.36.3", "1.99.0"], "1.99", "1.99.0 is none of the releases .*; an admin installs an Isthmus"),
        ("1.36.3", [], "", "no Kubernetes at all; an admin runs playbooks/kubernetes.yml"),
    ],
)
def test_refusal_names_its_remedy(before, there, wanted, words):
    with pytest.raises(RefusedError, match=words):
        way(before, there, wanted=wanted)


def test_newest_that_cannot_be_reached_is_a_warning():
    found = plan(data("1.36.3"), [image("1.36.3"), image("1.38.0")])
    assert (found.last.kubernetes, found.is_move) == ("1.36.3", False)
    assert "this site lacks 1.37: ask an admin for it" in found.warning
    assert not plan(data("1.36.3"), [image("1.36.3"), image("1.38.0")], wanted="1.36").warning


@pytest.mark.parametrize(
    ("before", "after"), [("3.5.30", "3.7.3"), ("3.5.16", "3.6.14"), ("3.7.3", "3.6.14"), ("3.6.14", "3.5.30")]
)
def test_etcd_goes_one_minor_at_a_time_too(before, after):
    with pytest.raises(RefusedError, match=f"etcd {before} wrote your data last, and from there etcd {after} of Kub"):
        plan(data("1.36.3", before), [image("1.36.4", after)])


def test_etcd_of_an_image_between_makes_the_way():
    there = [image("1.36.4", "3.6.14"), image("1.37.2", "3.7.3")]
    found = plan(data("1.36.3", "3.5.30"), there)
    assert [step.etcd for step in found.steps] == ["3.6.14", "3.7.3"]


def test_another_etcd_alone_is_a_move():
    there = [image("1.36.3", "3.6.14"), image("1.36.3", "3.7.3")]
    found = plan(data("1.36.3", "3.6.14"), there)
    assert (found.is_move, found.last.etcd) == (True, "3.7.3")


def test_image_that_failed_is_not_tried_again_by_itself():
    failed = image("1.37.2").file.name
    assert way("1.36.3", ["1.36.3", "1.37.2"], failed=failed) == ["1.36.3"]
    assert way("1.36.1", ["1.36.1", "1.36.3", "1.37.2"], failed=failed) == ["1.36.3"]
    # Not for the sake of the one behind it either, nor for one that was asked for earlier.
    assert way("1.36.3", ["1.36.3", "1.37.2", "1.38.0"], failed=failed) == ["1.36.3"]
    assert way("1.36.3", ["1.36.3", "1.37.2"], failed=failed, wanted="1.37") == ["1.36.3"]
    # Nothing else is left.
    assert way("1.36.3", ["1.37.2"], failed=failed) == ["1.37.2"]


VERSIONS = st.builds(
    image,
    st.builds("1.{}.{}".format, st.integers(34, 39), st.integers(0, 3)),
    st.sampled_from(["3.5.16", "3.5.30", "3.6.14", "3.6.16", "3.7.3"]),
)
SITES = st.lists(VERSIONS, min_size=1, max_size=8, unique=True)
REQUESTS = st.one_of(st.just(""), st.builds("1.{}".format, st.integers(34, 39)))


def follows(now: Versions, then: Versions):
    """Whether one minor step at most, and none back, is between them."""
    kubernetes = int(then.kubernetes.split(".")[1]) - int(now.kubernetes.split(".")[1])
    etcd = int(then.etcd.split(".")[1]) - int(now.etcd.split(".")[1])
    least = not (etcd == 1 and now.etcd == "3.5.16")
    return kubernetes in (0, 1) and etcd in (0, 1) and least


def reachable(start, site):
    """What can be reached at all, by steps that go up, and a last one that may be any."""
    found, todo = set(), [start]
    while todo:
        now = todo.pop()
        for each in site:
            if follows(now, each.versions) and each.versions not in found:
                found.add(each.versions)
                if numbers(each.versions) > numbers(now):
                    todo.append(each.versions)
    return found | ({start} & {each.versions for each in site})


def numbers(versions):
    return skew.numbers(versions.kubernetes), skew.numbers(versions.etcd)


@given(VERSIONS, SITES, REQUESTS)
def test_each_step_is_allowed_and_the_best_one_is_reached(before, site, wanted):
    there = [each for each in site if each.kubernetes.startswith(f"{wanted}.") or not wanted]
    within = [each.versions for each in ordered(there) if each.versions in reachable(before.versions, site)]
    if not within:
        with pytest.raises(RefusedError, match="; "):
            plan(before.versions, site, wanted)
        return
    found = plan(before.versions, site, wanted)
    assert found.last.versions == within[-1]
    assert found.is_move == (found.last.versions != before.versions)
    versions = [before.versions, *(step.versions for step in found.steps)]
    assert all(follows(one, other) or one == other for one, other in pairwise(versions))
    # Up, but for a last step within a release.
    assert versions[1:-1] == sorted(versions[1:-1], key=numbers)


@given(VERSIONS, SITES, REQUESTS, st.data())
def test_start_that_is_cut_off_anywhere_ends_the_same(before, site, wanted, drawn):
    try:
        whole = plan(before.versions, site, wanted)
    except RefusedError:
        return
    # A step to an older patch release with a newer etcd is the last one, and may open a way that the next start takes.
    if numbers(whole.last.versions) < numbers(before.versions):
        return
    cut = drawn.draw(st.integers(0, len(whole.steps) - 1))
    again = plan(whole.steps[cut].versions, site, wanted)
    assert again.last.versions == whole.last.versions
    assert len(again.steps) <= max(1, len(whole.steps) - cut)


@given(VERSIONS, SITES, st.data())
def test_image_that_failed_is_used_only_where_nothing_else_can_be(before, site, drawn):
    failed = drawn.draw(st.sampled_from(site)).file.name
    others = [each for each in site if each.file.name != failed]
    try:
        found = plan(before.versions, site, failed=failed)
    except RefusedError:
        return
    if failed in [step.file.name for step in found.steps]:
        assert not others or not reachable(before.versions, others)
