"""What the texts name is there: files, make targets, playbooks, variables."""

import json
import re

import pytest

from handbook.hooks import GENERATED
from isthmus.filters.validate.check import cluster_role_specs
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

PAGES = tree.files("*.md")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# A path of this tree, in code or in prose; other paths begin elsewhere.
PATH = re.compile(r"(?<![\w/.(~-])((?:build|docs|inventories|locks|molecule|playbooks|roles|src|tests)/[\w./*-]+)")
# What a reader makes.
READERS_OWN = {"inventories/existing", "inventories/existing/hosts.yml", "inventories/openstack"}
VARIABLE = re.compile(rf"`((?:{'|'.join(sorted({*tree.names('roles'), 'cluster'}))})_[a-z0-9_]+)`")


def known_variables():
    specs = cluster_role_specs(str(tree.ROOT / "roles"))
    entries = [entry for spec in specs.values() for entry in spec["argument_specs"].values()]
    filters = {name for path in tree.files("src/isthmus/filters/*.py") for name in defined(path)}
    return {
        *(option for entry in entries for option in entry.get("options") or {}),
        *Sources([str(tree.ROOT / "inventories")]).documented(),
        *(entry.key for entry in Sources([str(tree.ROOT / "inventories")]).entries),
        *tree.names("roles"),
        *filters,
    }


def defined(path):
    return re.findall(r"^def (\w+)", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=tree.shown)
def test_links_lead_somewhere(page):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    made = {tree.ROOT / "docs" / address for address in GENERATED}
    paths = [(page.parent / link).resolve() for link in links]
    assert not [path for path in paths if not path.exists() and path not in made]


@pytest.mark.parametrize("page", PAGES, ids=tree.shown)
def test_make_targets_exist(page):
    targets = re.findall(r"^([a-z][a-z-]*):", (tree.ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"\bmake ([a-z][a-z-]*)", " ".join(CODE.findall(page.read_text())))
    assert set(named) <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=tree.shown)
def test_paths_exist(page):
    named = {path.rstrip("./") for path in PATH.findall(page.read_text())}
    assert not [path for path in named - READERS_OWN if not list(tree.ROOT.glob(path))]


@pytest.mark.parametrize("page", PAGES, ids=tree.shown)
def test_playbooks_exist(page):
    named = re.findall(r"\bplaybooks/\w+\.yml", page.read_text())
    assert not [path for path in named if not (tree.ROOT / path).exists()]


def test_variables_exist():
    known = known_variables()
    named = {(tree.shown(page), name) for page in PAGES for name in VARIABLE.findall(page.read_text())}
    assert not sorted((page, name) for page, name in named if name not in known)


def test_list_of_plugins_is_what_a_scenario_brings():
    """Scenario `network` does what an admin reads."""
    listed = re.search(r"```json\n(.*?)```", (tree.ROOT / "docs/admins/cni.md").read_text(), re.DOTALL)
    brought = (tree.ROOT / "molecule/network/templates/10-pods.conflist.j2").read_text()
    assert listed
    assert json.loads(listed[1]) == json.loads(brought.replace("{{ site_pods }}", "10.180.1.0/24"))
