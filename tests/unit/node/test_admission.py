from dataclasses import replace

import pytest

from isthmus.node.service.admission import Asked, Joined, Known, RefusalError, admit
from isthmus.node.tokens import create

NOW = 1000.0
TOKEN, RECORD = create("a" * 64, names=["c3", "gone"], uses=1, expires=NOW + 60)
ASKED = Asked("c3", "key", "r1", TOKEN.id, TOKEN.secret)
KNOWN = Known("compute", {"c3": "192.0.2.3", "c4": "192.0.2.4"}, "r1", {TOKEN.id: RECORD}, {}, {})
OTHER = {"c3": Joined("other key", "x", 1.0, "")}
SAME = {"c3": Joined("key", TOKEN.id, 1.0, "")}


def known(**values):
    return replace(KNOWN, **values)


def record(**values):
    return {TOKEN.id: replace(RECORD, **values)}


@pytest.mark.parametrize(
    ("asked", "knows"),
    [
        pytest.param(ASKED, KNOWN, id="its token"),
        pytest.param(ASKED, known(used={TOKEN.id: frozenset({("c3", "key")})}, joined=SAME), id="cut off and again"),
        pytest.param(replace(ASKED, token="", secret=""), known(joined=SAME), id="joined before, without a token"),
        pytest.param(ASKED, known(tokens=record(names=(), kind="compute")), id="any of its class"),
        pytest.param(ASKED, known(joined=OTHER, tokens=record(replace=True)), id="the admin lets it replace another"),
    ],
)
def test_node_is_let_in(asked, knows):
    admit(asked, knows, NOW)


@pytest.mark.parametrize(
    ("asked", "knows", "now", "words"),
    [
        pytest.param(replace(ASKED, token="", secret=""), KNOWN, NOW, "a token is needed", id="no token"),
        pytest.param(replace(ASKED, secret="x" * 43), KNOWN, NOW, "not valid, or was revoked", id="guessed"),
        pytest.param(ASKED, known(tokens={}), NOW, "not valid, or was revoked", id="revoked"),
        pytest.param(ASKED, KNOWN, NOW + 60, "has expired", id="old"),
        pytest.param(replace(ASKED, name="c4"), KNOWN, NOW, "the token is not for c4", id="another name"),
        pytest.param(replace(ASKED, name="gone"), KNOWN, NOW, "no compute node gone", id="not in the inventory"),
        pytest.param(ASKED, known(joined=OTHER), NOW, "another machine has joined as c3", id="name is taken"),
        pytest.param(ASKED, known(used={TOKEN.id: frozenset({("c4", "k")})}), NOW, "was used up", id="used up"),
        pytest.param(replace(ASKED, release="r2"), KNOWN, NOW, "the image has Isthmus r2", id="another release"),
        pytest.param(
            replace(ASKED, token="", secret="", key="k2"),
            known(joined=SAME),
            NOW,
            "a token is needed",
            id="stolen name",
        ),
    ],
)
def test_node_is_refused_with_a_remedy(asked, knows, now, words):
    with pytest.raises(RefusalError, match=words) as refused:
        admit(asked, knows, now)
    assert TOKEN.secret not in str(refused.value)


def test_who_has_no_token_learns_nothing():
    """One answer for a name that is there, one that is taken, and one that is not."""
    answers = set()
    for name, joined in (("c3", {}), ("c3", OTHER), ("nothing", {})):
        with pytest.raises(RefusalError) as refused:
            admit(replace(ASKED, name=name, secret="x" * 43, release="r2"), known(joined=joined), NOW)
        answers.add(str(refused.value))
    assert len(answers) == 1
