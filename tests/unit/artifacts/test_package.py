"""A recipe's key follows all that its package is made of; what the cache has is not built again."""

import hashlib

import pytest
import yaml

from isthmus.artifacts import package, recipe
from isthmus.artifacts.store import Store
from isthmus.clients.process import ProcessError
from isthmus.filters.errors import InputError
from isthmus.model import skew
from isthmus.model.programs import Way
from isthmus.support.modules import dpkg
from tests.repo import tree

RECIPE = {
    "version": "1.2.3",
    "suite": "trixie",
    "date": "2026-11-01",
    "source": {"sha256": "0" * 64, "urls": ["{mirror}/tool.tar.gz"]},
    "packages": ["gcc"],
}


@pytest.fixture
def folder(tmp_path):
    """A recipe in a tree of its own."""
    path = tmp_path / "build/tool"
    (path / "debian").mkdir(parents=True)
    (tmp_path / "locks").mkdir()
    for file in ("package.sh", "debian/control", "../../locks/build.txt"):
        (path / file).write_text(f"{file}\n")
    write(path)
    return path


def write(folder, **changes):
    reported = {key: value for key, value in (RECIPE | changes).items() if value is not None}
    (folder / "recipe.yml").write_text(yaml.safe_dump(reported))


def arguments(folder, cache, **changes):
    return {"recipe": str(folder), "cache": str(cache), "targets": "", "apt": "", "jobs": 1, "memory_mib": 1} | changes


def test_recipe_is_read(folder):
    found = recipe.load(folder)
    assert str(found) == "tool 1.2.3 with setuid"
    assert found.package_version == f"1.2.3+setuid.{found.key[:12]}"
    assert found.epoch == 1793491200  # date --utc --date=2026-11-01 +%s


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1.2.4"},
        {"suite": "forky"},
        {"date": "2026-11-02"},
        {"packages": ["gcc", "make"]},
        {"source": RECIPE["source"] | {"sha256": "1" * 64}},
    ],
)
def test_key_follows_the_recipe(folder, change):
    before = recipe.load(folder).key
    write(folder, **change)
    assert recipe.load(folder).key != before


@pytest.mark.parametrize("file", ["package.sh", "debian/control", "../../locks/build.txt"])
def test_key_follows_the_files(folder, file):
    before = recipe.load(folder).key
    (folder / file).write_text("other\n")
    assert recipe.load(folder).key != before


def test_key_follows_no_address(folder):
    before = recipe.load(folder).key
    write(folder, source=RECIPE["source"] | {"urls": ["https://elsewhere.test/"]})
    assert recipe.load(folder).key == before


def test_recipe_without_go_follows_no_go(folder):
    write(folder, go=False, mark="pmix")
    found = recipe.load(folder)
    assert (str(found), found.package_version) == ("tool 1.2.3 with pmix", f"1.2.3+pmix.{found.key[:12]}")
    (folder / "../../locks/build.txt").write_text("other\n")
    assert recipe.load(folder).key == found.key


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"version": None}, "lacks version"),
        ({"sourze": 1}, "unknown key of the recipe: 'sourze'; did you mean 'source'"),
        ({"source": {"urls": ["u"]}}, "its source lacks sha256"),
        ({"source": {"sha256": "abc", "urls": ["u"]}}, "no SHA-256: 'abc' (3 characters); copy the 64 hex digits"),
        ({"mark": "mine"}, "mark 'mine' is none of the project's own"),
        ({"date": "yesterday"}, "is no recipe: Invalid isoformat string"),
    ],
)
def test_wrong_recipe_is_refused(folder, change, reported):
    write(folder, **change)
    with pytest.raises(InputError) as refused:
        recipe.load(folder)
    assert str(refused.value).startswith(str(folder / "recipe.yml"))
    assert reported in str(refused.value)


@pytest.mark.parametrize(("name", "go"), [("apptainer", True), ("slurm", False)])
def test_recipe_of_the_tree_is_right(name, go):
    found = recipe.load(tree.ROOT / "build" / name)
    assert (found.suite, found.go) == ("trixie", go)


def test_plugin_is_for_the_slurm_that_upgrades_know():
    found = recipe.load(tree.ROOT / "build/slurm")
    assert found.version == skew.SLURM_PMIX
    assert all(url.endswith(f"slurm-wlm_{skew.upstream(found.version)}.orig.tar.gz") for url in found.urls)


def test_plugin_is_known_by_the_name_of_its_package():
    assert f"Package: {dpkg.SLURM_PMIX}" in (tree.ROOT / "build/slurm/debian/control").read_text().splitlines()


WITHOUT_GO = {"go": False, "mark": "pmix"}
SOURCE = b"source"


@pytest.fixture
def debian(monkeypatch):
    """No address answers, and what would be run in a Debian is kept."""
    ran = []

    def refuse(url, path):
        said = f"W: unsandboxed\nE: Failed to fetch {url}  404  Not Found\nE: Download Failed"
        raise ProcessError("apt-helper", 100, "ended with status 100", stderr=said)

    class Debian:
        def __init__(self, *made):
            self.made = made

        def run(self, command, environment, *, inside, result):
            ran.append((command, sorted(inside)))
            result[1].write_text("package")

    monkeypatch.setattr(package.debian, "download", refuse)
    monkeypatch.setattr(package.debian, "unpack", lambda archive, source: source.mkdir())
    monkeypatch.setattr(package.debian, "Debian", Debian)
    return ran


def ask(folder, cache, sha256, *, dry=False):
    write(
        folder,
        **WITHOUT_GO,
        source={"sha256": sha256, "urls": ["{mirror}/tool.tar.gz", "https://snapshot.test/1/tool.tar.gz"]},
    )
    targets = "trixie http://mirror.test/debian main\n"
    return package.run(arguments(folder, cache, targets=targets), [].append, dry=dry)


@pytest.mark.parametrize("dry", [False, True])
def test_source_that_no_address_gives_is_refused_with_its_place(folder, tmp_path, debian, dry):
    result = ask(folder, tmp_path / "cache", "0" * 64, dry=dry)
    assert result["failed"]
    assert "\n  Failed to fetch http://mirror.test/debian/tool.tar.gz  404" in result["msg"]
    assert "\n  Failed to fetch https://snapshot.test/1/tool.tar.gz" in result["msg"]
    assert f"; put the file with sha256 {'0' * 64} at {tmp_path}/cache/sources/tool.tar.gz, or add" in result["msg"]
    assert result["msg"].endswith(f"an address that has it to {folder}/recipe.yml")
    assert debian == []


def test_source_that_was_put_there_by_hand_is_taken(folder, tmp_path, debian):
    (tmp_path / "cache/sources").mkdir(parents=True)
    (tmp_path / "cache/sources/tool.tar.gz").write_bytes(SOURCE)
    result = ask(folder, tmp_path / "cache", hashlib.sha256(SOURCE).hexdigest())
    assert (result["changed"], result["source_version"]) == (True, "1.2.3")
    # Without Go nothing of it is in the Debian.
    assert debian == [
        (["sh", "/srv/recipe/package.sh", "1.2.3", result["version"], "1"], ["/srv/recipe", "/srv/source"])
    ]


def test_check_run_builds_nothing(folder, tmp_path, debian):
    (tmp_path / "cache/sources").mkdir(parents=True)
    (tmp_path / "cache/sources/tool.tar.gz").write_bytes(SOURCE)
    result = ask(folder, tmp_path / "cache", hashlib.sha256(SOURCE).hexdigest(), dry=True)
    assert (result, debian) == ({"changed": True}, [])
    assert not [*(tmp_path / "cache/programs/work").iterdir()]


def test_source_that_is_another_is_refused(folder, tmp_path, debian):
    (tmp_path / "cache/sources").mkdir(parents=True)
    (tmp_path / "cache/sources/tool.tar.gz").write_bytes(b"cut")
    result = ask(folder, tmp_path / "cache", hashlib.sha256(SOURCE).hexdigest())
    assert result["failed"]
    assert f"{tmp_path}/cache/sources/tool.tar.gz: sha256 is" in result["msg"]
    assert debian == []


@pytest.fixture
def kept(folder, tmp_path):
    """The cache has the package already; its entry there."""
    cache = tmp_path / "cache"
    store = Store(cache / "programs")
    (tmp_path / "package.deb").write_text("package")
    return cache, store.keep(recipe.load(folder).key, "tool", Way.BUILD, tmp_path / "package.deb")


@pytest.mark.parametrize("dry", [False, True])
def test_package_in_the_cache_is_not_built_again(folder, kept, dry):
    cache, entry = kept
    result = package.run(arguments(folder, cache), [].append, dry=dry)
    assert result == result | {"changed": False, "sha256": entry.sha256, "version": recipe.load(folder).package_version}
    assert result["path"] == f"{cache}/programs/blobs/{entry.sha256}"


def test_package_that_was_changed_is_refused(folder, kept):
    cache, entry = kept
    (cache / "programs/blobs" / entry.sha256).write_text("another")
    result = package.run(arguments(folder, cache), [].append)
    assert result["failed"]
    assert f"expected {entry.sha256}; remove the file and run again" in result["msg"]


def test_unknown_argument_is_refused(folder, tmp_path):
    result = package.run(arguments(folder, tmp_path / "cache", job=2), [].append)
    assert "did you mean 'jobs'" in result["msg"]
