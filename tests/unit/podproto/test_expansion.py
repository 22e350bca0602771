"""`$(NAME)` in commands and variables."""

import pytest

from isthmus.podproto.expansion import constant, environment, escape, expand, expand_known
from isthmus.podproto.plan import Fact, Variable

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
    assert expand_known(text, KNOWN) == left


@pytest.mark.parametrize("text", ["", "a", "$", "$$", "$(A)", "$$(A)", "a$b", "p$$w$(A)$", "$()"])
def test_escaped_text_expands_to_itself(text):
    assert constant(escape(text)) == text
    assert constant(expand_known(escape(text), {"A": "wrong"})) == text


def test_facts_are_not_constant():
    assert constant("x/$(IP)") is None


VALUES = {"A": "1", "B": "$(A)", "with.dot": "d"}
# As k8s.io/kubernetes/third_party/forked/golang/expansion documents them.
CASES = {
    "$(A)": "1",
    "x$(A)y": "x1y",
    "$(A)$(A)": "11",
    "$(B)": "$(A)",
    "$(with.dot)": "d",
    "$(NONE)": "$(NONE)",
    "$$(A)": "$(A)",
    "$$$(A)": "$1",
    "$$$$(A)": "$$(A)",
    "$": "$",
    "$$": "$",
    "$A": "$A",
    "$(A": "$(A",
    "$()": "$()",
    "costs 5$": "costs 5$",
    "": "",
}


@pytest.mark.parametrize("text", CASES)
def test_text_is_expanded(text):
    assert expand(text, VALUES) == CASES[text]


def test_variables_see_those_before_them():
    reported = [
        Variable("LATER", "$(IP)"),
        Variable("IP", fact=Fact.POD_IP),
        Variable("URL", "http://$(IP)"),
        Variable("URL", "$(URL)/x"),
    ]
    assert environment(reported, {"pod_ip": "10.0.0.1"}) == {
        "LATER": "$(IP)",
        "IP": "10.0.0.1",
        "URL": "http://10.0.0.1/x",
    }
