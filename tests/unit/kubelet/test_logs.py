"""Logs of ended pods."""

from datetime import UTC, datetime

import pytest

from isthmus.kubelet.api.logs import kept, options
from isthmus.kubelet.pods.store import PodFolder
from isthmus.podproto.logs import LogOptions

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST = "2026-01-01T11:00:00.123456789Z stdout F before\n"
LOG = """2026-01-01T11:59:00.000000001Z stdout F one
2026-01-01T11:59:10.5Z stderr P two
2026-01-01T11:59:10.6Z stderr F  and more
broken
2026-01-01T11:59:59+00:00 stdout F three
"""


@pytest.fixture
def runs(tmp_path):
    paths = [tmp_path / "0.log", tmp_path / "1.log"]
    for path, text in zip(paths, (FIRST, LOG), strict=True):
        path.write_text(text)
    return [[path] for path in paths]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, "one\ntwo and more\nthree\n"),
        ({"tailLines": "1"}, "three\n"),
        ({"tailLines": "0"}, ""),
        ({"limitBytes": "5"}, "one\nt"),
        ({"previous": "true"}, "before\n"),
        ({"sinceSeconds": "30"}, "three\n"),
        ({"sinceTime": "2026-01-01T11:59:05Z"}, "two and more\nthree\n"),
        ({"timestamps": "true", "tailLines": "1"}, "2026-01-01T11:59:59+00:00 three\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_log_is_cut_as_wanted(runs, query, shown):
    assert b"".join(kept(runs, options(query, NOW))).decode() == shown


def test_rotated_part_of_a_log_is_shown_before_the_rest(tmp_path):
    (tmp_path / "logs/main").mkdir(parents=True)
    (tmp_path / "logs/main/0.log.1").write_text(FIRST)
    (tmp_path / "logs/main/0.log").write_text(LOG)
    runs = PodFolder(tmp_path).logs("main")
    assert b"".join(kept(runs, LogOptions())).decode() == "before\none\ntwo and more\nthree\n"
    assert b"".join(kept(runs, LogOptions(tail=3))).decode() == "one\ntwo and more\nthree\n"


def test_run_that_never_was_has_no_log(runs):
    assert not list(kept(runs[:1], LogOptions(previous=True)))
    assert not list(kept([], LogOptions()))


@pytest.mark.parametrize("query", [{"tailLines": "-1"}, {"limitBytes": "x"}, {"sinceTime": "yesterday"}])
def test_wrong_query_is_refused(query):
    with pytest.raises(ValueError, match=r"no number|no RFC 3339"):
        options(query, NOW)
