"""A recipe's key follows all it is made of; one that is wrong is reported."""

import pytest
import yaml

from isthmus.filters.errors import InputError
from isthmus.filters.images import recipes
from tests.repo import tree

DATE = "2026-11-01"
TARGETS = "bookworm https://mirror.test/debian main\n"
APT = 'Acquire::http::Proxy "http://proxy.test";\nOther "x";\n'
RECIPE = {"suite": "trixie", "variant": "apt", "packages": ["a", "b"], "command": "sh", "environment": {"HI": "1"}}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "build.sh").write_text("build")
    write(tmp_path)
    return tmp_path


def write(folder, **changes):
    recipe = {key: value for key, value in (RECIPE | changes).items() if value is not None}
    (folder / "tiny/recipe.yml").write_text(yaml.safe_dump(recipe))


def read(folder, date=DATE):
    (recipe,) = recipes.registry_recipes(str(folder), ["tiny"], date, "/cache")
    return recipe


def test_recipe_is_named_by_its_key(folder):
    recipe = read(folder)
    assert len(recipe["key"]) == 16
    assert recipe["tags"] == [recipe["key"], "latest"]
    assert recipe["archive"] == f"/cache/tiny-{recipe['key']}.tar"
    assert recipe["epoch"] == 1793491200  # date --utc --date=2026-11-01 +%s


def test_key_follows_every_part(folder):
    keys = {read(folder)["key"], read(folder, "2026-11-02")["key"]}
    write(folder, packages=["a"])
    keys.add(read(folder)["key"])
    (folder / "tiny/customize.sh").write_text("true")
    keys.add(read(folder)["key"])
    (folder / "build.sh").write_text("other")
    keys.add(read(folder)["key"])
    assert len(keys) == 5


def test_build_command_takes_this_machines_sources(folder):
    recipe = read(folder)
    command = recipes.registry_build_command(recipe, TARGETS, APT)
    split = command.index("--")
    assert command[1:split] == [recipe["archive"], "--config.cmd=sh", "--config.env=HI=1"]
    assert {"--variant=apt", "--include=a,b", '--aptopt=Acquire::http::Proxy "http://proxy.test";'} <= {*command}
    assert command[-3:] == ["trixie", "-", "deb https://mirror.test/debian trixie main"]


@pytest.mark.parametrize(("variant", "hook"), [("apt", "customize"), ("extract", "extract")])
def test_build_command_runs_the_hook(folder, variant, hook):
    write(folder, variant=variant)
    (folder / "tiny/customize.sh").write_text("true")
    command = recipes.registry_build_command(read(folder), TARGETS, APT)
    assert f"--{hook}-hook={folder}/tiny/customize.sh" in command


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"suite": None}, "lacks suite"),
        ({"package": ["x"]}, "unknown key of .*recipe.yml: 'package'; did you mean 'packages'"),
        ({"variant": "minimal"}, "unknown variant in .*recipe.yml: 'minimal'"),
    ],
)
def test_wrong_recipe_is_refused(folder, changes, message):
    write(folder, **changes)
    with pytest.raises(InputError, match=message):
        read(folder)


def test_unknown_image_is_refused(folder):
    with pytest.raises(InputError, match="unknown image in registry_images: 'tiney'; did you mean 'tiny'"):
        recipes.registry_recipes(str(folder), ["tiney"], DATE, "/cache")


@pytest.mark.parametrize("date", ["today", "2026-13-01", "20261101", ""])
def test_wrong_date_is_refused(folder, date):
    with pytest.raises(InputError, match="registry_images_date is"):
        read(folder, date)


def test_base_and_programs_go_before_the_own_hook(folder):
    for name in ("base", "tiny"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "customize.sh").write_text(name)
    write(
        folder, base="base", programs={"tool": "/bin/tool"}, entrypoint=["/bin/tool"], command=["a", "b c"], tags=["9"]
    )
    keys = set()
    for path, digest in (("/x", "1"), ("/elsewhere", "1"), ("/x", "2")):
        programs = {"tool": {"path": path, "sha256": digest}}
        (recipe,) = recipes.registry_recipes(str(folder), ["tiny"], DATE, "/cache", programs)
        keys.add(recipe["key"])
    assert len(keys) == 2
    assert recipe["tags"][2:] == ["9"]
    command = recipes.registry_build_command(recipe, TARGETS, APT)
    assert command[2:5] == ["--config.entrypoint=/bin/tool", "--config.cmd=a", "--config.cmd=b c"]
    hooks = [
        word.split("=", 1)[1] for word in command if word.startswith("--customize-hook") and "/dev/null" not in word
    ]
    tool = 'install -D -m 755 /x "$1/bin/tool"'
    assert hooks == [f"{folder}/base/customize.sh", tool, f"{folder}/tiny/customize.sh"]


def test_wheels_of_a_lock_file_are_installed_before_the_own_hook(tmp_path):
    folder = tmp_path / "build/images"
    (folder / "tiny").mkdir(parents=True)
    (tmp_path / "locks").mkdir()
    (folder / "build.sh").write_text("build")
    (folder / "tiny/customize.sh").write_text("own")
    write(folder, wheels={"some": "/opt/some"})
    with pytest.raises(InputError, match=r"needs some\.txt in locks"):
        read(folder)
    keys = set()
    for text in ("a==1", "a==2"):
        (tmp_path / "locks/some.txt").write_text(text)
        recipe = read(folder)
        keys.add(recipe["key"])
    assert len(keys) == 2
    pip, own = recipe["hooks"]
    assert own.endswith("customize.sh")
    assert "--require-hashes" in pip
    assert pip.endswith(f'--requirement {tmp_path}/locks/some.txt --prefix "$1/opt/some"')


def test_program_that_was_not_obtained_is_refused(folder):
    write(folder, programs={"tool": "/bin/tool"})
    with pytest.raises(InputError, match="needs the program tool"):
        read(folder)


def test_recipes_for_conformance_are_right():
    names = [path.parent.name for path in tree.files("build/images/conformance/*/recipe.yml")]
    programs = {name: {"path": "/x", "sha256": "1"} for name in ("agnhost", "agnhost.crt", "agnhost.key")}
    found = recipes.registry_recipes(str(tree.ROOT / "build/images/conformance"), names, DATE, "/cache", programs)
    assert sorted(names) == tree.load(tree.ROOT / "roles/registry/vars/main.yml")["_registry_conformance"]
    assert all(len(recipe["tags"]) > 2 for recipe in found)


def test_recipes_of_the_tree_are_right():
    images = tree.ROOT / "build/images"
    names = [path.parent.name for path in images.glob("*/recipe.yml")]
    assert set(names) == set(tree.load(tree.ROOT / "roles/registry/defaults/main.yml")["registry_images"])
    assert len(recipes.registry_recipes(str(images), names, DATE, "/cache")) == len(names)
