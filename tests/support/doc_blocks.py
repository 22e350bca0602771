"""Blocks of the docs: the commands that a page shows, and the blocks that a page promises to work.

A block after `<!-- run -->` is run by a test; the block after `<!-- output -->` that follows it is what it prints, as
far as it matters: each line in this order, others between them; `...` stands for anything, a number for any number, a
blank for any blanks. After `<!-- run until it fits -->` a block is run again until it prints that.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^ *```([a-z]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(
    r"^<!-- run( until it fits)? -->\n```sh\n(.*?)^```\n(?:\n<!-- output -->\n```text\n(.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_SHELL = {"sh", "console", ""}
_PROMPT = re.compile(r"^(?:\w+@[\w-]+:\S*)?\$ (.*)$", re.MULTILINE)
_HEREDOC = re.compile(r"<<'?(\w+)'?.*?^\1$", re.MULTILINE | re.DOTALL)
_ENDS = {";", "&&", "||", "|", "&", "(", ")", "<(", "$", "\n"}
_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True)
class Block:
    """A block to run.

    Attributes:
        script: for bash.
        printed: what it prints, loosely; empty for anything.
        until: run it again until it prints that.
    """

    script: str
    printed: str
    until: bool


def runnable(page: str) -> list[Block]:
    """Return the blocks of a page that are run, in their order."""
    return [Block(script, printed or "", bool(until)) for until, script, printed in _RUN.findall(page)]


def fits(printed: str, output: str) -> bool:
    """Tell whether an output is what a page promises."""
    lines = iter(output.splitlines())
    return all(any(_pattern(line).search(seen) for seen in lines) for line in printed.splitlines())


def commands(page: str) -> Iterator[list[str]]:
    """Give each command of a page's blocks of shell, as words; what sets variables before it is left out."""
    for language, text in FENCE.findall(page):
        if language in _SHELL:
            for line in _lines(language, text):
                yield from _split(line)


def _pattern(line: str) -> re.Pattern[str]:
    words = [re.sub(r"\d+", r"\\d+", re.escape(word).replace(r"\.\.\.", ".*")) for word in line.split()]
    return re.compile(r"\s+".join(words))


def _lines(language: str, text: str) -> list[str]:
    joined = _HEREDOC.sub("", text).replace("\\\n", " ")
    return _PROMPT.findall(joined) if language == "console" else joined.splitlines()


def _split(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.wordchars += "@%+:,[]{}<>"
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
