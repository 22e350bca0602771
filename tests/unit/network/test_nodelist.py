"""Slurm's folded lists of nodes."""

import random

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from isthmus.network.node.nodelist import NODES_MAX, NodeListError, fold, unfold


@pytest.mark.parametrize(
    ("folded", "names"),
    [
        ("c1", ["c1"]),
        ("c[1-3,7],login", ["c1", "c2", "c3", "c7", "login"]),
        ("c[9-11]", ["c9", "c10", "c11"]),
        ("c[08-10]", ["c08", "c09", "c10"]),
        ("login,c,c[1-2]", ["login", "c", "c1", "c2"]),
        ("c[3,1-2]", ["c3", "c1", "c2"]),
        ("gpu-a.b_c[1-2]", ["gpu-a.b_c1", "gpu-a.b_c2"]),
        ("r1n[1-2],r2n1", ["r1n1", "r1n2", "r2n1"]),
        ("[1-2]", ["1", "2"]),
        ("c1234567890", ["c1234567890"]),
    ],
)
def test_names_fold_and_unfold(folded, names):
    assert unfold(folded) == tuple(names)
    assert fold(names) == folded


@pytest.mark.parametrize(
    ("folded", "names"),
    [
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("c[1-2]-ib", ["c1-ib", "c2-ib"]),
        ("c[001-2]", ["c001", "c002"]),
    ],
)
def test_other_ways_to_fold_are_read(folded, names):
    assert unfold(folded) == tuple(names)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "c1,",
        ",c1",
        "c1,,c2",
        "c[1-2",
        "c1-2]",
        "c[]",
        "c[1-]",
        "c[-1]",
        "c[2-1]",
        "c[1,]",
        "c[a]",
        "c[[1]]",
        "c1 ,c2",
        "c/1",
        "../c1",
        ".c",
        "-c",
        "c\u0661",
        "c[\u0661-2]",
        "c1,c1",
        "c[1-3],c2",
        "x" * 254,
        "c1\n",
        "c[1-99999999999]",
        "c[1-999999999]",
        "c" + "[1-9]" * 100,
        f"c[0-{NODES_MAX}]",
        "c[1-2]" + "[1-40000]",
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(NodeListError):
        unfold(text)


@pytest.mark.parametrize("names", [[], ["c1", "c1"], ["c[1-2]"], ["a,b"], [""]])
def test_names_that_are_none_are_not_folded(names):
    with pytest.raises(NodeListError):
        fold(names)


def test_random_names_come_back_in_order():
    chance = random.Random(5)  # noqa: S311 -- the same each time
    for _ in range(200):
        some = [f"{chance.choice(['c', 'gpu', 'r1n', ''])}{chance.randrange(120):0{chance.randint(1, 3)}d}"]
        some += [f"c{number}" for number in chance.sample(range(40), 20)] + ["c", "gpu"]
        names = list(dict.fromkeys(some))
        chance.shuffle(names)
        assert unfold(fold(names)) == tuple(names)


def test_folded_text_means_the_same_to_clustershell():
    names = [f"c{number}" for number in range(8, 4000, 3)] + ["c001", "c002", "login"]
    assert set(NodeSet(fold(names), resolver=RESOLVER_NOGROUP)) == set(names)
