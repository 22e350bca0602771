"""What the end of a run shows of a failure."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.filters.failures import summary


def item(name: str, message: str) -> dict[str, Any]:
    return {"item": name, "msg": message, "failed": True}


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ({"msg": "no"}, ["no"]),
        ({"msg": "one\ntwo"}, ["one", "two"]),
        ({"msg": ["one", "two"]}, ["one", "two"]),
        ({}, ["no reason given"]),
        ({"msg": "rc", "stdout": "a", "stderr": "b\nc"}, ["rc", "stdout: a", "stderr: b", "stderr: c"]),
        ({"results": [{"item": "x", "msg": "fine"}, item("y", "no")]}, ["item y:", "no"]),
        (
            {"results": [item(name, "no") for name in "abcde"]},
            ["item a:", "no", "item b:", "no", "item c:", "no", "and 2 more items"],
        ),
    ],
)
def test_task_and_reason_are_reported(result: dict[str, Any], lines: list[str]) -> None:
    assert summary("c1", "base : Do", result).splitlines() == [
        "FAILED on c1: base : Do",
        *(f"  {one}" for one in lines),
    ]


def test_only_last_words_of_a_program_are_reported() -> None:
    lines = summary("c1", "Do", {"msg": "rc", "stderr": "\n".join(map(str, range(100)))}).splitlines()
    assert lines[-1] == "  stderr: 99"
    assert len(lines) < 40


def test_censored_result_is_not_reported() -> None:
    text = summary("c1", "Do", {"censored": "hidden by no_log", "msg": "secret", "stdout": "secret"})
    assert "hidden by no_log" in text
    assert "secret" not in text
