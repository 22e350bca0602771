"""The site of the docs: built strictly, complete, and with nothing from outside."""

import re
import subprocess
import sys

import pytest
import yaml
from pymdownx.superfences import SuperFencesException

from handbook import commands, metrics, packages, pods, variables
from handbook.diagrams import fence
from handbook.hooks import GENERATED
from tests.repo import tree

DOCS = tree.ROOT / "docs"
PAGES = tree.files("docs/*.md")
OUTSIDE = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def listed(nav):
    """The pages of a list of mkdocs.yml."""
    for entry in nav:
        for held in entry.values() if isinstance(entry, dict) else [entry]:
            yield from listed(held) if isinstance(held, list) else [held]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a site that was just built, without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING  -" not in done.stderr
    return folder


def test_site_needs_nothing_from_outside(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    assert not [(page.name, OUTSIDE.findall(page.read_text())) for page in pages if OUTSIDE.search(page.read_text())]


def test_numbered_steps_are_lists(site):
    """Python-Markdown takes a step whose indentation is wrong for text of the one before."""
    texts = {
        page.name: re.sub(r"<pre.*?</pre>", "", page.read_text(), flags=re.DOTALL) for page in site.rglob("*.html")
    }
    assert not [name for name, text in texts.items() if re.search(r"^\d\. ", text, re.MULTILINE)]


def test_diagrams_are_drawn(site):
    fences = {page: page.read_text().count("```mermaid") for page in PAGES if "```mermaid" in page.read_text()}
    assert fences
    drawn = {page: (site / page.relative_to(DOCS)).with_suffix(".html").read_text() for page in fences}
    counted = {page: text.count('<img class="diagram"') for page, text in drawn.items()}
    assert counted == fences


def test_diagram_that_cannot_be_drawn_ends_the_build():
    with pytest.raises(SuperFencesException, match="correct the diagram that begins with 'sequenceDiagram"):
        fence("sequenceDiagram\n  a->>b: one; two\n", "mermaid", "diagram", {}, None)


def test_every_page_has_a_reader():
    nav = list(listed(yaml.safe_load((tree.ROOT / "mkdocs.yml").read_text())["nav"]))
    assert len(nav) == len(set(nav))
    assert set(nav) == {page.relative_to(DOCS).as_posix() for page in PAGES} | set(GENERATED)


@pytest.mark.parametrize("page", PAGES, ids=tree.shown)
def test_page_says_at_once_what_it_is_for(page):
    title, _, rest = page.read_text().partition("\n\n")
    assert re.fullmatch(r"# .+", title)
    assert re.search(r"\b[Tt]h(is|ese) pages? ", rest.partition("\n\n")[0])


def test_architecture_names_every_package():
    found = {path.name for path in (tree.ROOT / "src/isthmus").iterdir() if (path / "__init__.py").is_file()}
    text = (DOCS / "explanation/architecture.md").read_text()
    assert found
    assert not [name for name in found if f"`isthmus.{name}`" not in text]


@pytest.mark.parametrize("page", PAGES, ids=tree.shown)
def test_modules_named_in_pages_exist(page):
    named = re.findall(r"\bisthmus((?:\.[a-z_]+)+)\b", "".join(re.findall(r"`[^`\n]+`", page.read_text())))
    parts = [name.strip(".").split(".") for name in named if not name.endswith((".md", ".tar", ".conf", ".service"))]
    places = [tree.ROOT.joinpath("src/isthmus", *part) for part in parts]
    assert not [place for place in places if not place.is_dir() and not place.with_suffix(".py").is_file()]


def test_every_command_is_in_the_reference():
    text = commands.text()
    names = [name for name, _ in commands.commands()]
    assert "isthmus network trace" in names
    assert not [name for name in names if f"# {name}\n" not in text]


def test_every_package_is_in_the_reference():
    text = packages.text(tree.ROOT)
    folders = {path.parent for path in tree.files("src/isthmus/*.py") if path.name != "__init__.py"}
    names = [".".join(folder.relative_to(tree.ROOT / "src").parts) for folder in folders]
    assert "isthmus.kubelet.admit" in names
    assert not [name for name in names if f"## {name}\n" not in text]


def test_every_role_is_in_the_reference():
    text = variables.text(tree.ROOT)
    assert not [name for name in variables.roles(tree.ROOT) if f"## {name}\n" not in text]
    assert "`base_users[].name`" in text


def test_reference_of_pods_has_fields_annotations_and_refusals():
    text = pods.text(tree.ROOT)
    assert "| `hostPID` | no | it belongs to the node" in text
    assert "| `os` | in part | nodes run Linux" in text
    assert "| `slurm-job.hpk.io/flags` |" in text
    assert "procMount {procMount} is not offered: /proc belongs to the node; remove it" in text


def test_metric_that_says_nothing_of_itself_ends_the_build():
    assert "| `a_total` | counter | b | what it counts |" in metrics.described(
        '# HELP a_total what it counts\n# TYPE a_total counter\na_total{b="c"} 1\n'
    )
    with pytest.raises(ValueError, match="does not say"):
        metrics.described("# TYPE a_total counter\na_total 1\n")
