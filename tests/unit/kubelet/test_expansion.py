"""`$(NAME)` in commands and variables."""

import pytest

from isthmus.kubelet.translate.expansion import escape, expand, settled

KNOWN = {"A": "one", "IP": "$(IP)", "MONEY": "5$$$$"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain", "plain"),
        ("", ""),
        ("$(A)", "one"),
        ("$(A)$(A)", "oneone"),
        ("x$(A)y", "xoney"),
        ("$(B)", "$$(B)"),
        ("$$(A)", "$$(A)"),
        ("$$$(A)", "$$one"),
        ("$A", "$A"),
        ("100$", "100$$"),
        ("$$", "$$"),
        ("$(A", "$$(A"),
        ("$()", "$$()"),
        ("$(IP):80", "$(IP):80"),
        ("$(MONEY)", "5$$$$"),
        ("cost: $5 $(IP)", "cost: $5 $(IP)"),
        ("$(A$(A)", "$$(A$$(A)"),
    ],
)
def test_text_is_expanded_as_far_as_known(text, left):
    assert expand(text, KNOWN) == left


@pytest.mark.parametrize("text", ["", "a", "$", "$$", "$(A)", "$$(A)", "a$b", "p$$w$(A)$", "$()"])
def test_escaped_text_expands_to_itself(text):
    assert settled(escape(text)) == text
    assert settled(expand(escape(text), {"A": "wrong"})) == text


def test_facts_are_not_settled():
    assert settled("x/$(IP)") is None
