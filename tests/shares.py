"""What the stages of `make test` took, what they may take, and the table of it in docs/explanation/testing.md.

    make shares      write the table, of results/shares.json

A stage over its budget is named when the whole run is over its own, and not before: times of a shared machine are
hints.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results/shares.json"
BUDGET = ROOT / "tests/budget.toml"
PAGE = ROOT / "docs/explanation/testing.md"
TOTAL = "total"
_TABLE = re.compile(r"(?<=<!-- shares -->\n).*?(?=<!-- end of shares -->)", re.DOTALL)


@dataclass(frozen=True)
class Share:
    """What a stage took.

    Attributes:
        stage: the target.
        begun_s: since the run began.
        ended_s: since the run began.
        status: its exit status.
        busy_percent: how much of the cores' time was used meanwhile, by whomever.
    """

    stage: str
    begun_s: int
    ended_s: int
    status: int = 0
    busy_percent: int = 0

    @property
    def seconds(self) -> int:
        """How long it took."""
        return self.ended_s - self.begun_s

    def __str__(self) -> str:
        """Return the line that a run ends with."""
        return f"    {self.stage:<17} {self.seconds:>5} s{f'  failed: {self.status}' if self.status else ''}"

    def record(self) -> dict[str, object]:
        """Return it for JSON."""
        return asdict(self)


def budget() -> dict[str, int]:
    """Return how many seconds each stage may take, and the whole run."""
    return dict(tomllib.loads(BUDGET.read_text())["seconds"])


def beside(share: Share, shares: Sequence[Share]) -> list[str]:
    """Return the other stages that ran during a part of one."""
    return [
        other.stage
        for other in shares
        if other != share and other.begun_s < share.ended_s and share.begun_s < other.ended_s
    ]


def over(shares: Sequence[Share], limits: Mapping[str, int]) -> list[str]:
    """Return what to say of a run that took longer than it may; nothing of one that did not."""
    took_s = max(share.ended_s for share in shares)
    said = [f"    {'together':<17} {took_s:>5} s of {limits[TOTAL]}"]
    if took_s <= limits[TOTAL]:
        return said
    grew = [share for share in shares if share.seconds > limits.get(share.stage, took_s)]
    named = [f"{share.stage} took {share.seconds} s of its {limits[share.stage]}" for share in grew]
    return [*said, f"The run is over its budget (tests/budget.toml): {', '.join(named) or 'no stage alone is'}."]


def table(shares: Sequence[Share], limits: Mapping[str, int]) -> str:
    """Return the table of a whole run."""
    rows = [
        f"| `{share.stage}` | {share.seconds} | {limits[share.stage]} | {share.busy_percent} %"
        f" | {', '.join(beside(share, shares))} |"
        for share in shares
    ]
    took_s = max(share.ended_s for share in shares)
    head = ["| stage | seconds | budget | cores busy | beside it |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, f"| together | {took_s} | {limits[TOTAL]} | | |", ""])


def written(page: str, text: str) -> str:
    """Return a page with another table."""
    found, count = _TABLE.subn(lambda _: text, page)
    if count != 1:
        raise SystemExit(
            "docs/explanation/testing.md has no place for the table; put <!-- shares --> and <!-- end of shares --> in"
        )
    return found


def main() -> int:
    """Write the table into the page."""
    if not RESULT.exists():
        raise SystemExit(f"{RESULT} is not there; run make test")
    reported = json.loads(RESULT.read_text())
    shares = [Share(**stage) for stage in reported["stages"]]
    if failed := [share.stage for share in shares if share.status]:
        raise SystemExit(f"the run of results/shares.json failed in {', '.join(failed)}; run make test again")
    PAGE.write_text(written(PAGE.read_text(), table(shares, budget())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
