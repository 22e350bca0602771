"""Strict reading of JSON objects."""

from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.network.api.fields import BoundError, FieldError, Fields, parse


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "1",
        "[]",
        '"a"',
        "{",
        '{"a":1} x',
        '{"a":1,"a":1}',
        '{"b":{"a":1,"a":2}}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        "[" * 60000,
        '{"a":' * 10000,
        '{"a":' + "9" * 5000 + "}",
        "\ufeff{}",
        "{'a':1}",
    ],
)
def test_what_is_no_object_is_refused(text):
    with pytest.raises(FieldError):
        parse(text)


def test_integer_is_a_whole_number_within_bounds():
    assert Fields({"a": 5}).integer("a", 5, 5) == 5
    for wrong, error in [(True, FieldError), (5.0, FieldError), ("5", FieldError), (None, FieldError)]:
        with pytest.raises(error, match="a is no whole number"):
            Fields({"a": wrong}).integer("a", 1, 9)
    for outside in (0, 10, 10**30):
        with pytest.raises(BoundError, match="within 1 and 9"):
            Fields({"a": outside}).integer("a", 1, 9)


@pytest.mark.parametrize("wrong", [0, -1, 601, 1e308 * 10, True, "1", None])
def test_number_is_above_zero_and_bounded(wrong):
    with pytest.raises(FieldError):
        Fields({"a": wrong}).number("a", 600)


def test_number_may_be_whole():
    assert Fields({"a": 600}).number("a", 600) == 600


@pytest.mark.parametrize("wrong", ["four", "\ud800", "no", 3, None, ["a"]])
def test_text_is_bounded_and_of_characters(wrong):
    with pytest.raises(FieldError):
        Fields({"a": wrong}).text("a", 3, lambda text: text != "no")


@pytest.mark.parametrize("wrong", ["green", "RED", "", 1, None])
def test_choice_is_one_of_the_enum(wrong):
    assert Fields({"a": "red"}).choice("a", Colour) is Colour.RED
    with pytest.raises(FieldError, match="a "):
        Fields({"a": wrong}).choice("a", Colour)


@pytest.mark.parametrize("wrong", ["", "10.0.0", "10.0.0.256", "10.0.0.01", "::1", " 10.0.0.1", 167772161, None])
def test_address_is_ipv4(wrong):
    assert Fields({"a": "10.0.0.1"}).address("a") == IPv4Address("10.0.0.1")
    with pytest.raises(FieldError):
        Fields({"a": wrong}).address("a")


@pytest.mark.parametrize("wrong", ["10.0.0.0", "10.0.0.1/24", "10.0.0.0/255.255.255.0", "10.0.0.0/33", "::/0", 5])
def test_network_is_written_one_way(wrong):
    assert Fields({"a": "10.0.0.0/24"}).network("a") == IPv4Network("10.0.0.0/24")
    with pytest.raises(FieldError):
        Fields({"a": wrong}).network("a")


def test_field_is_named_when_missing_or_unknown():
    fields = Fields({"b": 1})
    with pytest.raises(FieldError, match="a is missing"):
        fields.integer("a", 0, 1)
    with pytest.raises(FieldError, match="unknown field 'b'"):
        fields.end()
    fields.integer("b", 0, 1)
    fields.end()


def test_foreign_words_are_cut_and_ascii():
    with pytest.raises(BoundError) as caught:
        Fields({"a": "\u2603\n" * 1000}).choice("a", Colour)
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 120
