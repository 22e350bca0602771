"""Whatever a user sends to isthmus-jobsd is a demand with bounded numbers, or refused by name."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.jobs import users
from isthmus.model import job_feed
from isthmus.model.job_feed import ASKED_BYTES, PODS_MOST, Demand, FeedMessageError, Figures, Phase, Stage, Starts
from isthmus.support import metrics

COUNTS = st.integers(0, PODS_MOST - 1)
NUMBERS = st.integers(0, (1 << 53) - 1)
FIGURES = st.builds(
    Figures,
    st.dictionaries(st.sampled_from(Phase), COUNTS),
    st.dictionaries(st.sampled_from(Stage), st.builds(Starts, NUMBERS, NUMBERS)),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
NAMES = st.sampled_from([*Phase, *Stage, "pods", "starts", "user", ""]) | st.text(max_size=5)
REPORTS = st.fixed_dictionaries(
    {
        "pods": st.dictionaries(NAMES, VALUES, max_size=4) | VALUES,
        "starts": st.dictionaries(NAMES, VALUES, max_size=4) | VALUES,
    },
    optional={"user": VALUES},
)
LINES = st.fixed_dictionaries(
    {"pause_ms": NUMBERS | VALUES, "ask": NUMBERS | VALUES}, optional={"figures": REPORTS | VALUES}
)


@given(st.builds(Demand, NUMBERS.map(lambda ms: ms // 1000), NUMBERS, st.none() | FIGURES))
def test_what_a_kubelet_says_is_understood_and_fits_a_line(demand):
    line = job_feed.write_demand(demand)
    assert job_feed.read_demand(line) == demand
    assert len(line) < ASKED_BYTES / 4


@given(st.binary(max_size=200) | LINES.map(lambda line: json.dumps(line).encode()))
@example(b'{"pause_ms": 0, "ask": 0, "figures": {"pods": {"Running": true}, "starts": {}}}')
@example(b'{"pause_ms": 0, "ask": 0, "figures": {"pods": {"Running": 1e9}, "starts": {}}}')
@example(b'{"pause_ms": 0, "ask": 0, "figures": {"pods": {}, "starts": {"queue": [NaN, 1]}}}')
@example(b"[" * 4000)
def test_what_anybody_says_is_a_demand_or_refused(line):
    try:
        demand = job_feed.read_demand(line)
    except FeedMessageError as error:
        assert str(error)
        return
    if (figures := demand.figures) is None:
        return
    assert figures.pods.keys() <= {*Phase}
    assert figures.starts.keys() <= {*Stage}
    text = metrics.text(metrics.Families([*users.families({1: figures}, {1: "alice"}.__getitem__)]))
    shown = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(shown) <= 15
    assert all(float(line.rpartition(" ")[2]) >= 0 for line in shown)
    assert all('user="alice"' in line for line in shown if "{" in line)
