"""Ports, intervals and receivers of monitoring that cannot work are named before any change."""

import pytest

from isthmus.filters.validate.layers.monitoring import monitoring_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources

RECEIVERS = [{"name": "mail"}, {"name": "chat"}]


def site(**variables):
    return Site({"ctl": variables}, {"all": ["ctl"], "controller": ["ctl"]}, {}, Sources([]))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"monitoring_port": 1, "monitoring_node_port": 65535, "monitoring_interval_s": 5},
        {"monitoring_receivers": RECEIVERS, "monitoring_route": {"receiver": "chat", "routes": [{"receiver": "mail"}]}},
    ],
)
def test_right_monitoring_has_no_problem(variables):
    assert list(monitoring_problems(site(**variables))) == []


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"monitoring_port": 0}, "monitoring_port is 0, no port; write"),
        ({"monitoring_port": 9100, "monitoring_node_port": 9100}, "are both 9100; give"),
        ({"monitoring_interval_s": 1}, "monitoring_interval_s is 1; write a number from 5 to 60"),
        ({"monitoring_slurm_interval_s": "often"}, "is 'often'; write"),
        ({"monitoring_receivers": [{"email_configs": []}]}, "a receiver without a name; give"),
        ({"monitoring_receivers": [*RECEIVERS, {"name": "mail"}]}, "two receivers named 'mail'; give"),
        ({"monitoring_route": {"receiver": "mail"}}, "names the receiver 'mail'; monitoring_receivers has none"),
        (
            {"monitoring_receivers": RECEIVERS, "monitoring_route": {"routes": [{"receiver": "pager"}]}},
            "names the receiver 'pager'; monitoring_receivers has mail, chat",
        ),
    ],
)
def test_wrong_monitoring_is_named_with_a_remedy(variables, problem):
    (found,) = monitoring_problems(site(**variables))
    assert problem in found
