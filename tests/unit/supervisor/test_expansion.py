import pytest

from isthmus.supervisor.expansion import environment, expand

KNOWN = {"A": "1", "B": "$(A)", "with.dot": "d"}
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
    assert expand(text, KNOWN) == CASES[text]


def test_variables_see_those_before_them():
    told = [
        {"name": "LATER", "value": "$(IP)"},
        {"name": "IP", "fact": "pod_ip"},
        {"name": "URL", "value": "http://$(IP)"},
        {"name": "URL", "value": "$(URL)/x"},
    ]
    assert environment(told, {"pod_ip": "10.0.0.1"}) == {
        "LATER": "$(IP)",
        "IP": "10.0.0.1",
        "URL": "http://10.0.0.1/x",
    }
