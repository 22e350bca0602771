import io
import json
import subprocess
import sys
import tarfile

import pytest

from isthmus.artifacts import bundle

CONTENT = {"programs/tool": b"tool", "wheels/a.whl": b"wheel", "isthmus.tar": b"tree"}


@pytest.fixture
def root(tmp_path):
    for name in bundle.WANTED:
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "root"


@pytest.fixture
def made(tmp_path, root):
    for name, content in CONTENT.items():
        path = tmp_path / "content" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    bundle.pack(tmp_path / "content", tmp_path / "site.tar", root)
    return tmp_path / "site.tar"


def rewrite(path, change):
    """Change the members of a bundle, name -> content, as an attacker or a bad disk would."""
    with tarfile.open(path) as tar:
        members = {info.name: tar.extractfile(info).read() for info in tar}
    change(members)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def test_bundle_is_laid_out_once(made, tmp_path, root):
    folder = bundle.unpack(made, tmp_path / "cache", root)
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT
    before = (folder / "isthmus.tar").stat().st_ino
    assert bundle.unpack(made, tmp_path / "cache", root) == folder
    assert (folder / "isthmus.tar").stat().st_ino == before


def test_packages_are_laid_out(tmp_path, root):
    (tmp_path / "content").mkdir()
    (tmp_path / "a.deb").write_text("deb")
    with tarfile.open(tmp_path / "content/packages.tar", "w") as tar:
        tar.add(tmp_path / "a.deb", "./a.deb")
    bundle.pack(tmp_path / "content", tmp_path / "site.tar", root)
    assert (bundle.unpack(tmp_path / "site.tar", tmp_path / "cache", root) / "packages/a.deb").read_text() == "deb"


def test_equal_content_makes_equal_bundles(made, tmp_path, root):
    bundle.pack(tmp_path / "content", tmp_path / "again.tar", root)
    assert (tmp_path / "again.tar").read_bytes() == made.read_bytes()


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda members: members.update({"programs/tool": b"evil"}), "programs/tool: sha256 is"),
        (lambda members: members.pop("programs/tool"), "programs/tool: sha256 is no file"),
        (lambda members: members.pop("manifest.json"), "is no bundle"),
        (lambda members: members.update({"../outside": b"evil"}), "is no bundle"),
    ],
    ids=["changed", "lost", "no manifest", "outside"],
)
def test_changed_bundle_is_refused(made, tmp_path, root, change, reported):
    rewrite(made, change)
    with pytest.raises(bundle.BundleError, match=r"make bundle|copy the bundle") as refused:
        bundle.unpack(made, tmp_path / "cache", root)
    assert reported in str(refused.value)
    assert str(made) in str(refused.value)
    assert not list((tmp_path / "cache").glob("*"))


def test_bundle_of_another_version_is_refused(made, tmp_path, root):
    (root / "artifacts.yml").write_text("a new version")
    with pytest.raises(bundle.BundleError, match="another version"):
        bundle.unpack(made, tmp_path / "cache", root)


def test_bundle_of_another_schema_is_refused(made, tmp_path, root):
    rewrite(
        made,
        lambda members: members.update(
            {"manifest.json": json.dumps({"schema": 2, "wanted": "", "files": {}}).encode()}
        ),
    )
    with pytest.raises(bundle.BundleError, match="another version"):
        bundle.unpack(made, tmp_path / "cache", root)


@pytest.mark.parametrize("content", [None, b"", b"no archive"])
def test_what_is_no_bundle_is_refused(tmp_path, root, content):
    if content is not None:
        (tmp_path / "site.tar").write_bytes(content)
    with pytest.raises(bundle.BundleError, match="is no bundle"):
        bundle.unpack(tmp_path / "site.tar", tmp_path / "cache", root)


def test_script_needs_no_package(tmp_path):
    command = [sys.executable, "-I", "-S", bundle.__file__, "unpack", tmp_path / "none.tar", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("bundle: ")
