"""Blocks of commands in the docs, and what a page promises of each.

Before each block of commands stands a comment, its mark, which no rendered page shows:

| mark | means |
|---|---|
| `run` | a test types it as the page's reader would (tests/support/clusters/doc_pages.py) |
| `run until it fits` | the same, again and again until it prints what the page says |
| `run on the controller`, `run on a compute node` | typed by root there |
| `covered by tests/a.py::test_b` | too long or too destructive to be typed: that test, or those, run the same |
| `not run: REASON` | nothing here can run it |

Lines below the first one of a `run` are typed before the block and are no part of the page: what a reader has already.

The block after `<!-- output -->` that follows a block is what that one prints, as far as it matters: each line in this
order, others between them; `...` stands for anything, a number for any number, a blank for any blanks.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^ *```([a-z]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
READER = "the reader"
_RUN = re.compile(r"run(?P<until> until it fits)?(?: on (?P<place>the controller|a compute node))?")
_COVERED = "covered by "
_NOT_RUN = "not run: "
_SHELL = {"sh", "console", ""}
_PROMPT = re.compile(r"^(?:\w+@[\w-]+:\S*)?\$ (.*)$", re.MULTILINE)
_HEREDOC = re.compile(r"<<'?(\w+)'?.*?^\1$", re.MULTILINE | re.DOTALL)
_ENDS = {";", "&&", "||", "|", "&", "(", ")", "<(", "$", "\n"}
_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True)
class Block:
    """A block of commands.

    Attributes:
        line: where it begins in its page.
        script: for bash.
        printed: what it prints, loosely; empty for anything.
        place: who types it and where; empty where it is not typed.
        before: what is typed before it.
        until: type it again until it prints that.
        covered_by: the tests that run the same commands.
        reason: why nothing runs it.
    """

    line: int
    script: str
    printed: str = ""
    place: str = ""
    before: str = ""
    until: bool = False
    covered_by: tuple[str, ...] = ()
    reason: str = ""

    @property
    def marked(self) -> bool:
        """Whether the page says what becomes of it."""
        return bool(self.place or self.covered_by or self.reason)


def blocks(page: str) -> list[Block]:
    """Return the blocks of commands of a page, in their order."""
    found: list[Block] = []
    fences = list(FENCE.finditer(page))
    for number, fence in enumerate(fences, 1):
        if fence[1] not in _SHELL:
            continue
        printed = "".join(
            following[2] for following in fences[number : number + 1] if _mark(page, following) == "output"
        )
        line = page.count("\n", 0, fence.start()) + 1
        found.append(_block(_mark(page, fence), line, textwrap.dedent(fence[2]), textwrap.dedent(printed)))
    return found


def runnable(page: str) -> list[Block]:
    """Return the blocks of a page that are typed, in their order."""
    return [block for block in blocks(page) if block.place]


def fits(printed: str, output: str) -> bool:
    """Return whether an output is what a page promises."""
    lines = iter(output.splitlines())
    return all(any(_pattern(line).search(seen) for seen in lines) for line in printed.splitlines())


def commands(page: str) -> Iterator[list[str]]:
    """Give each command of a page's blocks of shell, as words; what sets variables before it is left out."""
    for language, text in FENCE.findall(page):
        if language in _SHELL:
            yield from words(text, language)


def words(script: str, language: str = "sh") -> Iterator[list[str]]:
    """Give each command of a script, as words."""
    for line in _lines(language, script):
        yield from _split(line)


def _mark(page: str, fence: re.Match[str]) -> str:
    """Return the comment right before a block."""
    before = page[: fence.start()].rstrip()
    return before[before.rindex("<!--") + 4 : -3].strip() if before.endswith("-->") else ""


def _block(mark: str, line: int, script: str, printed: str) -> Block:
    first, _, before = mark.partition("\n")
    if found := _RUN.fullmatch(first):
        return Block(line, script, printed, found["place"] or READER, textwrap.dedent(before), bool(found["until"]))
    whole = " ".join(mark.split())
    if whole.startswith(_COVERED):
        return Block(line, script, printed, covered_by=tuple(whole.removeprefix(_COVERED).split(", ")))
    if whole.startswith(_NOT_RUN):
        return Block(line, script, printed, reason=whole.removeprefix(_NOT_RUN))
    return Block(line, script, printed)


def _pattern(line: str) -> re.Pattern[str]:
    found = [re.sub(r"\d+", r"\\d+", re.escape(word).replace(r"\.\.\.", ".*")) for word in line.split()]
    return re.compile(r"\s+".join(found))


def _lines(language: str, text: str) -> list[str]:
    joined = _HEREDOC.sub("", text).replace("\\\n", " ")
    return _PROMPT.findall(joined) if language == "console" else joined.splitlines()


def _split(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.wordchars += "@%+:,[]{}<>$"
    found: list[str] = []
    for word in [*lexer, ";"]:
        if word.strip("$") and word not in _ENDS and not set(word) <= set(";&|()<>"):
            found.append(word)
            continue
        while found and _ASSIGNMENT.match(found[0]):
            found.pop(0)
        if found:
            yield found
        found = []
