"""Words that were coined here, and that nobody who knows Kubernetes and Slurm would look for, do not come back.

Identifiers, file names and prose must do without them, and nobody is "he".
"""

import io
import re
import tokenize

import pytest

from tests.repo import tree

# Word -> what the field says.
COINED = {
    "told": "report, document, output, observed",
    "tell": "report, notify, progress, log",
    "tells": "reports",
    "anew": "again",
    "wish": "desired, request, options",
    "wishes": "desired, request, options",
    "wished": "desired",
    "settle": "apply, restore",
    "settled": "applied, restored",
    "settling": "applying, restoring",
    "underway": "in_progress",
    "leavings": "leftovers",
    "knocks": "requests",
}
CODE = ("src/*.py", "roles/*.py", "library/*.py", "filter_plugins/*.py", "action_plugins/*.py", "callback_plugins/*.py")
LETTERS = re.compile("|".join(COINED), re.IGNORECASE)
PROSE = ("src/isthmus/*.py", "src/handbook/*.py", "docs/*.md", "*.md")
ROLES = ("roles/*.py", "roles/*.yml", "roles/*.j2", "playbooks/*.yml", "library/*.py", "inventories/*.yml")
# The dialect in prose; "Tell" as a verb of tasks is report, publish or write.
DIALECT = re.compile(r"\b(?:told|anew|wish(?:es|ed)?|tells? of|name: Tell)\b", re.IGNORECASE)
# The dialect in code's own prose: programs report, return and print; things should or must; certificates are trusted.
CODED = re.compile(
    r"\b(?:tells?|whoever|shall|believe[sd]?|ma(?:de?|kes?) good|br(?:ings?|ought) about|words (?:say|have))\b",
    re.IGNORECASE,
)
SPOKEN = (*CODE, *ROLES, "src/spank/*.c", "src/spank/*.h", "tests/*.py")
# Other programs' words: Kubernetes' conformance tests say "Told to stop trying".
QUOTED = {"docs/results/conformance.md"}
PRONOUN = re.compile(r"\b(?:he|him|his|himself)\b", re.IGNORECASE)


def names(path):
    """Every identifier of a file, as often as it occurs; Python's own files have a method `tell`."""
    text = re.sub(
        r"def tell\(self\) -> int", "def position() -> int", path.read_text().replace(".tell()", ".position()")
    )
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.NAME]


def prose(path):
    """Return comments and texts of a Python file, other files whole."""
    text = path.read_text()
    if path.suffix in (".c", ".h"):
        return "\n".join(re.findall(r"/\*.*?\*/|\"[^\"\n]*\"", text, re.DOTALL)).replace("`tells`", "")
    if path.suffix != ".py":
        return text
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in tokens if token.type in kinds)


def words(name):
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower())


def test_identifiers_are_the_fields_words():
    found = {
        tree.shown(path): coined
        for path in tree.files(*CODE, "tests/*.py")
        if path.name != "test_words.py"
        # Only what has the letters of one is read as Python.
        and LETTERS.search(path.read_text())
        and (coined := sorted({name for name in names(path) if COINED.keys() & set(words(name))}))
    }
    assert not found


def test_modules_are_named_in_the_fields_words():
    coined = [path for path in tree.files("src/*.py") if COINED.keys() & set(words(path.stem))]
    assert not [tree.shown(path) for path in coined]


@pytest.mark.parametrize("pattern", PROSE)
def test_nobody_is_he(pattern):
    found = {
        tree.shown(path): PRONOUN.findall(path.read_text())
        for path in tree.files(pattern)
        if PRONOUN.search(path.read_text())
    }
    assert not found


@pytest.mark.parametrize("pattern", PROSE + ROLES)
def test_prose_is_plain_technical_english(pattern):
    found = {
        shown: words
        for path in tree.files(pattern)
        if (shown := tree.shown(path)) not in QUOTED and (words := DIALECT.findall(path.read_text()))
    }
    assert not found


@pytest.mark.parametrize("pattern", SPOKEN)
def test_code_speaks_plain_technical_english(pattern):
    found = {
        tree.shown(path): words
        for path in tree.files(pattern)
        if path.name != "test_words.py" and CODED.search(path.read_text()) and (words := CODED.findall(prose(path)))
    }
    assert not found
