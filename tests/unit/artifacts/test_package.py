"""A recipe's key follows all that its package is made of; what the cache has is not built again."""

import pytest
import yaml

from isthmus.artifacts import package, recipe
from isthmus.artifacts.store import Store
from isthmus.filters.errors import InputError
from isthmus.model.programs import Way
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


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"version": None}, "lacks version"),
        ({"sourze": 1}, "unknown key of the recipe: 'sourze'; did you mean 'source'"),
        ({"source": {"urls": ["u"]}}, "its source lacks sha256"),
        ({"source": {"sha256": "abc", "urls": ["u"]}}, "no SHA-256: 'abc' (3 characters); copy the 64 hex digits"),
        ({"date": "yesterday"}, "is no recipe: Invalid isoformat string"),
    ],
)
def test_wrong_recipe_is_refused(folder, change, reported):
    write(folder, **change)
    with pytest.raises(InputError) as refused:
        recipe.load(folder)
    assert str(refused.value).startswith(str(folder / "recipe.yml"))
    assert reported in str(refused.value)


def test_recipe_of_the_tree_is_right():
    assert recipe.load(tree.ROOT / "build/apptainer").suite == "trixie"


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


def test_check_run_builds_nothing(folder, tmp_path):
    assert package.run(arguments(folder, tmp_path / "cache"), [].append, dry=True) == {"changed": True}


def test_unknown_argument_is_refused(folder, tmp_path):
    result = package.run(arguments(folder, tmp_path / "cache", job=2), [].append)
    assert "did you mean 'jobs'" in result["msg"]
