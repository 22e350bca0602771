import pytest
import yaml

from isthmus.artifacts import table
from isthmus.filters.errors import InputError
from isthmus.model.programs import Way
from tests.repo import tree
from tests.support.files.releases import release, write_table

DIGEST = "0" * 64


def upstream(**changes):
    return {"url": "https://example.test/{version}/{program}", "sha256": {"amd64": DIGEST}} | changes


def test_program_is_read(tmp_path):
    programs = {"tool": {"package": "example.test/tool", "member": "bin/tool"}}
    found = table.load(write_table(tmp_path, suite=release(programs=programs, upstream=upstream(), cgo=True)))["tool"]
    assert str(found) == "tool 1.2.3"
    assert (found.upstream.member, found.upstream.sha256["amd64"]) == ("bin/tool", DIGEST)
    assert (found.build.module, found.build.cgo) == ("suite", True)


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"version": "latest"}, "name one released version"),
        ({"version": None}, "lacks version"),
        ({"licence": None}, "lacks licence"),
        ({"licens": "MIT"}, "did you mean 'licence'"),
        ({"programs": {"tool": {}}}, "neither upstream nor package"),
        ({"programs": {"tool": {"pakage": "x"}}}, "did you mean 'package'"),
        ({"upstream": upstream(sha256=None)}, "upstream without sha256"),
        ({"upstream": upstream(sha256={"amd64": "abc"})}, "no SHA-256: 'abc' (3 characters)"),
        ({"upstream": upstream(sha256={"amd64": DIGEST.replace("0", "g")})}, "no SHA-256"),
        ({"upstream": upstream(sha256={"x86": DIGEST})}, "unknown machine of tool's sha256: 'x86'"),
    ],
)
def test_wrong_row_is_refused(tmp_path, changes, reported):
    path = write_table(tmp_path, tool=release(**changes))
    with pytest.raises(InputError) as refused:
        table.load(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert reported in str(refused.value)


@pytest.mark.parametrize("text", ["", "schema: 2\nreleases: {a: {}}\n", "[1]", "releases: {", "schema: 1\nreleases: 3"])
def test_what_is_no_table_is_refused(tmp_path, text):
    (tmp_path / "artifacts.yml").write_text(text)
    with pytest.raises(InputError, match=r"artifacts\.yml"):
        table.load(tmp_path / "artifacts.yml")


def test_missing_module_is_refused(tmp_path):
    path = write_table(tmp_path, tool=release())
    (tmp_path / "build/go/tool/go.sum").unlink()
    with pytest.raises(InputError, match=r"build/go/tool/go\.sum is missing"):
        table.load(path)


def test_program_of_two_releases_is_refused(tmp_path):
    with pytest.raises(InputError, match="twice"):
        table.load(write_table(tmp_path, one=release(), two=release()))


def test_unknown_program_is_refused(tmp_path):
    with pytest.raises(InputError, match="unknown program in artifacts_programs: 'toool'; did you mean 'tool'"):
        table.pick(table.load(write_table(tmp_path, tool=release())), ["toool"])


def test_program_on_request_comes_only_when_named(tmp_path):
    rare = release(programs={"rare.test": {"package": "example.test/rare", "test": True}}, on_request=True)
    known = table.load(write_table(tmp_path, tool=release(), rare=rare))
    assert [program.name for program in table.pick(known, [])] == ["tool"]
    assert [program.build.test for program in table.pick(known, ["tool", "rare.test"])] == [False, True]


def test_archive_of_sources_is_a_program_with_one_way(tmp_path):
    sources = release(version="3.1", programs={"sources.tar.gz": {}}, upstream=upstream())
    found = table.load(write_table(tmp_path, sources=sources))["sources.tar.gz"]
    assert (str(found), found.upstream.member, found.build) == ("sources.tar.gz 3.1", None, None)


@pytest.mark.parametrize("order", [[], ["cache", "cache"], ["upstream", "magic"]])
def test_impossible_order_is_refused(order):
    with pytest.raises(InputError, match="artifacts_order"):
        table.ways(order)


def test_order_is_kept():
    assert table.ways(["build", "cache"]) == [Way.BUILD, Way.CACHE]


PROGRAMS = table.load(tree.ROOT / "artifacts.yml").values()


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.build], ids=str)
def test_module_names_the_version_of_the_table(program):
    module = tree.ROOT / "build/go" / program.build.module
    required = dict(line.split()[-3:-1] if "//" in line else line.split()[-2:] for line in requires(module / "go.mod"))
    owner = max((name for name in required if f"{program.build.package}/".startswith(f"{name}/")), key=len)
    assert required[owner] == f"v{program.version}"
    # A file is of the module, which the program beside it requires; a package of tests alone cannot be imported.
    imported = f'_ "{owner}/' if program.build.test else f'_ "{program.build.package}"'
    assert program.build.file or imported in (module / "tools.go").read_text()


def requires(go_mod):
    """The lines of a go.mod that name a direct requirement."""
    lines = [line.removeprefix("require").strip() for line in go_mod.read_text().splitlines()]
    return [line for line in lines if " v" in line and "// indirect" not in line and "=>" not in line]


def test_every_module_serves_a_program():
    modules = {path.parent.name for path in tree.files("build/go/*/go.mod")}
    assert modules == {program.build.module for program in PROGRAMS if program.build}


@pytest.mark.parametrize("module", ["kubernetes", "conformance"])
def test_kubernetes_staging_modules_follow_its_version(module):
    text = (tree.ROOT / f"build/go/{module}/go.mod").read_text()
    replaced = [line.split()[-1] for line in text.splitlines() if "=> k8s.io/" in line]
    version = yaml.safe_load((tree.ROOT / "artifacts.yml").read_text())["releases"]["kubernetes"]["version"]
    assert {*replaced} == {f"v0.{version.removeprefix('1.')}"}


def test_role_knows_every_program():
    spec = yaml.safe_load((tree.ROOT / "roles/artifacts/meta/argument_specs.yml").read_text())
    options = spec["argument_specs"]["main"]["options"]
    assert options["artifacts_programs"]["choices"] == [program.name for program in PROGRAMS]
    assert options["artifacts_order"]["choices"] == [*Way]
