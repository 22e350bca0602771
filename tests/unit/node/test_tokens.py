import json

import pytest

from isthmus.node import tokens
from isthmus.node.errors import RefusedError

PIN = "a" * 64


def made(**values):
    return tokens.create(PIN, **{"names": ["c3"], "uses": 1, "expires": 100.0, **values})


def test_token_is_read_as_it_is_written():
    token, _ = made()
    assert tokens.parse(f" {token}\n") == token


def test_two_tokens_have_nothing_in_common():
    (one, _), (other, _) = made(), made()
    assert one.id != other.id
    assert one.secret != other.secret


def test_record_has_no_secret():
    token, record = made()
    kept = json.dumps(tokens.written(record))
    assert token.secret not in kept
    assert tokens.read(json.loads(kept)) == record


def test_only_its_secret_fits():
    (token, record), (other, _) = made(), made()
    assert tokens.fits(record, token.secret)
    assert not tokens.fits(record, other.secret)
    assert not tokens.fits(record, "")


@pytest.mark.parametrize(
    "text",
    ["", "isthmus1", f"isthmus2.{'0' * 12}.{'s' * 43}.{PIN}", f"isthmus1.{'0' * 12}.{'s' * 43}.{PIN}.x", "x" * 10_000],
)
def test_text_that_is_no_token_is_refused_and_not_repeated(text):
    with pytest.raises(RefusedError) as refused:
        tokens.parse(text)
    assert not text or text not in str(refused.value)


@pytest.mark.parametrize(("text", "seconds"), [("1m", 60), ("1h", 3600), ("30d", 30 * 86400)])
def test_durations(text, seconds):
    assert tokens.duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0m", "1", "1w", "-1h", "31d", "1h30m", "1e3m", "\uff19m"])
def test_duration_that_is_none_or_too_long_is_refused(text):
    with pytest.raises(ValueError, match="30m, 1h or 7d"):
        tokens.duration_s(text)


@pytest.mark.parametrize(
    ("names", "kind", "name", "allowed"),
    [
        (["c3"], "", "c3", True),
        (["c3"], "", "c4", False),
        ([], "compute", "c4", True),
        ([], "login", "c4", False),
    ],
)
def test_names_and_class_decide(names, kind, name, allowed):
    _, record = made(names=names, kind=kind)
    assert record.allows(name, "compute") == allowed


@pytest.mark.parametrize("damage", [{"schema": 2}, {"uses": "many"}, {"names": None}, {"expires": "soon"}])
def test_damaged_record_is_none(damage):
    _, record = made()
    with pytest.raises((ValueError, TypeError)):
        tokens.read({**tokens.written(record), **damage})
