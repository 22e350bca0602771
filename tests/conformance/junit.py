"""What became of one case, by the JUnit report of the suite's run.

The report has all cases of the suite, those that were not asked for as skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from xml.etree import ElementTree

_PLACE = re.compile(r"^In \[\w+\] at: .*$", re.MULTILINE)
_SKIPPED = "skipped"


class Outcome(StrEnum):
    """What may become of a case."""

    PASSED = "passed"
    FAILED = "failed"
    INAPPLICABLE = "not applicable"


@dataclass(frozen=True)
class Verdict:
    """How a case ended, how long it took, and why it did not pass."""

    outcome: Outcome
    seconds: float
    reason: str = ""


def verdict(report: str, name: str) -> Verdict:
    """Read the report of a run of one case.

    Args:
        report: XML; "" when the suite wrote none.
        name: the case.
    """
    try:
        # The suite that wrote it is one of the cluster's own programs.
        entries = list(ElementTree.fromstring(report).iter("testcase")) if report else []  # noqa: S314
    except ElementTree.ParseError as error:
        return Verdict(Outcome.FAILED, 0.0, f"the suite's report cannot be read: {error}")
    case = next((entry for entry in entries if entry.get("name", "").endswith(name)), None)
    if case is not None and case.get("status") != _SKIPPED:
        return _ended(case)
    for entry in entries:
        if entry is not case and entry.get("status") not in (_SKIPPED, "passed"):
            return Verdict(Outcome.FAILED, 0.0, f"{entry.get('name')}: {_why(entry)}")
    reported = case.find(_SKIPPED) if case is not None else None
    if reported is not None and " - " in reported.get("message", ""):
        return Verdict(
            Outcome.INAPPLICABLE, 0.0, f"the suite skips it: {reported.get('message', '').split(' - ', 1)[1]}"
        )
    return Verdict(Outcome.FAILED, 0.0, "the suite did not run it")


def _ended(case: ElementTree.Element) -> Verdict:
    seconds = round(float(case.get("time") or 0), 1)
    if case.get("status") == "passed":
        return Verdict(Outcome.PASSED, seconds)
    return Verdict(Outcome.FAILED, seconds, _why(case))


def _why(entry: ElementTree.Element) -> str:
    found = next((entry.find(tag) for tag in ("failure", "error") if entry.find(tag) is not None), None)
    text = "" if found is None else "".join(found.itertext())
    message = _PLACE.split(text, maxsplit=1)[0]
    message = re.sub(r"^\s*\[[A-Z ]+\]\s*", "", message).strip()
    return message or str(entry.get("status"))
