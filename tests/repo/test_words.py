"""Words that were coined here, and that nobody who knows Kubernetes and Slurm would look for, do not come back.

Identifiers must do without them. What is left stands in LEFT by folder, with the reason; it may shrink and never grow.
"""

import io
import re
import tokenize
from collections import Counter

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
# Folder -> how many names may be left there: the kubelet's and the supervisor's get others with their redesign; in the
# other folders new modules and Ansible's are still to be gone through. A folder that is not here has none.
LEFT = {
    "src/isthmus/kubelet": 190,
    "src/isthmus/supervisor": 150,
    "src/isthmus/bench": 40,
    "src/isthmus/cli": 30,
    "src/isthmus/filters": 40,
    "library": 15,
    "roles": 75,
}
CODE = ("src/*.py", "roles/*.py", "library/*.py", "filter_plugins/*.py", "action_plugins/*.py", "callback_plugins/*.py")
PROSE = ("src/isthmus/*.py", "src/handbook/*.py", "docs/*.md", "*.md")
# Their prose goes with their names.
REDESIGNED = {"src/isthmus/kubelet", "src/isthmus/supervisor"}
PRONOUN = re.compile(r"\b(?:he|him|his|himself)\b", re.IGNORECASE)


def names(path):
    """Every identifier of a file, as often as it occurs; Python's own files have a method `tell`."""
    text = re.sub(
        r"def tell\(self\) -> int", "def position() -> int", path.read_text().replace(".tell()", ".position()")
    )
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.NAME]


def words(name):
    return re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower())


def folder(path):
    return next((each for each in LEFT if tree.shown(path).startswith(f"{each}/")), "")


def test_identifiers_are_the_fields_words():
    found = Counter()
    where = {}
    for path in tree.files(*CODE):
        coined = [name for name in names(path) if COINED.keys() & set(words(name))]
        if coined:
            found[folder(path)] += len(coined)
            where[tree.shown(path)] = sorted(set(coined))
    more = {each: count for each, count in found.items() if count > LEFT.get(each, 0)}
    assert not more, {path: names for path, names in where.items() if folder(tree.ROOT / path) in more}


def test_modules_are_named_in_the_fields_words():
    coined = [path for path in tree.files("src/*.py") if COINED.keys() & set(words(path.stem))]
    assert not [tree.shown(path) for path in coined]


@pytest.mark.parametrize("pattern", PROSE)
def test_nobody_is_he(pattern):
    found = {
        tree.shown(path): PRONOUN.findall(path.read_text())
        for path in tree.files(pattern)
        if folder(path) not in REDESIGNED and PRONOUN.search(path.read_text())
    }
    assert not found
