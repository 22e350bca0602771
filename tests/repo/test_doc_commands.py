"""Commands that the docs show can be typed: they parse, and what they name is there."""

import contextlib
import io
import itertools
import json
import re

import pytest

from isthmus.cli.main import parser
from tests.repo import tree
from tests.repo.test_docs import known_variables
from tests.support.doc_blocks import commands

PAGES = tree.files("*.md")
# It is the same for each command, and takes a while to make.
PARSER = parser()
# kubectl help, Kubernetes 1.36.
KUBECTL = {
    *("annotate", "api-resources", "api-versions", "apply", "attach", "auth", "autoscale", "certificate"),
    *("cluster-info", "completion", "config", "cordon", "cp", "create", "debug", "delete", "describe"),
    *("diff", "drain", "edit", "events", "exec", "explain", "expose", "get", "kustomize", "label", "logs"),
    *("options", "patch", "plugin", "port-forward", "proxy", "replace", "rollout", "run", "scale", "set"),
    *("taint", "top", "uncordon", "version", "wait"),
}
HELM = {
    *("completion", "create", "dependency", "env", "get", "help", "history", "install", "lint", "list", "package"),
    *("plugin", "pull", "push", "registry", "repo", "rollback", "search", "show", "status", "template", "test"),
    *("uninstall", "upgrade", "verify", "version"),
}
# Words for which a reader puts another.
PLACEHOLDER = re.compile(r"^\[.*\]$|^\.\.\.$")
INVENTORIES = {"inventories/existing", "inventories/openstack", "INVENTORY"}


def shown(program):
    """Page and words of each command of a program; options before a verb of kubectl count."""
    found = [(tree.shown(page), words) for page in PAGES for words in commands(page.read_text())]
    return [(page, words[1:]) for page, words in found if words[0].rpartition("/")[2] == program]


def understood(words):
    """Whether the parser of isthmus takes the words; what a reader replaces is left out."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            given = [word for word in words if not PLACEHOLDER.match(word)]
            PARSER.parse_args([word.lower() if word.isupper() else word for word in given])
        except SystemExit as ended:
            return ended.code == 0
    return True


def verb(words):
    return next((word for word in words if not word.startswith("-")), "")


def extra_variables(words):
    texts = [after for before, after in itertools.pairwise(words) if before in ("-e", "--extra-vars")]
    for text in texts:
        if text.startswith("{"):
            yield from json.loads(text)
        else:
            yield from re.findall(r"(\w+)=", text)


def test_commands_of_isthmus_parse():
    found = shown("isthmus")
    assert len(found) > 20
    assert not [(page, " ".join(words)) for page, words in found if not understood(words)]


def test_commands_named_in_texts_parse():
    named = {
        (tree.shown(page), text) for page in PAGES for text in re.findall(r"`isthmus ([a-z][^`\n]*)`", page.read_text())
    }
    commands_only = {(page, re.sub(r"\.\.\.| \|.*|>.*", "", text)) for page, text in named}
    unclear = [(page, text) for page, text in commands_only if not understood(text.split()) and not incomplete(text)]
    assert not unclear


def incomplete(text):
    """Whether a text names a command without what it needs, as prose may."""
    words = text.split()
    return understood([*words, "--help"]) and not any(word.startswith("-") for word in words)


def test_targets_of_make_exist():
    targets = set(re.findall(r"^([a-z][a-z-]*):", (tree.ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for _, words in shown("make") for word in words if re.fullmatch(r"[a-z][a-z-]*", word)}
    assert named
    assert named <= targets


def test_playbooks_and_inventories_exist():
    found = shown("ansible-playbook")
    assert found
    paths = {word for _, words in found for word in words if word.endswith(".yml")}
    given = {after for _, words in found for before, after in itertools.pairwise(words) if before == "-i"}
    assert not [path for path in paths | (given - INVENTORIES) if not (tree.ROOT / path).exists()]


def test_extra_variables_are_declared():
    known = known_variables()
    named = {(page, name) for page, words in shown("ansible-playbook") for name in extra_variables(words)}
    assert named
    assert not sorted((page, name) for page, name in named if name not in known)


def test_lists_are_given_to_playbooks_as_json():
    """Ansible splits NAME=[1, 2] at its blank."""
    texts = {tree.shown(path): path.read_text() for path in [*PAGES, *tree.files("playbooks/*.yml")]}
    assert not [path for path, text in texts.items() if re.search(r"-e '?\w+=[\[{]", text)]


@pytest.mark.parametrize(("program", "verbs"), [("kubectl", KUBECTL), ("helm", HELM)])
def test_verbs_are_real(program, verbs):
    assert not [(page, " ".join(words)) for page, words in shown(program) if verb(words) not in verbs]
