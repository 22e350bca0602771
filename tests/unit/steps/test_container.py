import json
from pathlib import Path

import pytest

from isthmus.steps import container
from isthmus.steps.container import Mount, Options, StepError

CONFIG = {"Entrypoint": ["/entry", "-x"], "WorkingDir": "/srv"}


def planned(asked, config=CONFIG):
    return json.loads(container.plan(asked, Path("/cache/a.squashfs"), config, "/home/alice", "/usr/bin/apptainer"))


@pytest.mark.parametrize(
    ("text", "mounts"),
    [
        ("", ()),
        ("/data", (Mount("/data", "/data"),)),
        ("/data:/in", (Mount("/data", "/in"),)),
        ("/data:/in:ro", (Mount("/data", "/in", read_only=True),)),
        ("/a:/b:rw,/c", (Mount("/a", "/b"), Mount("/c", "/c"))),
        ("./x:/x", (Mount("/home/alice/x", "/x"),)),
        ("../x:/x/", (Mount("/home/x", "/x"),)),
    ],
)
def test_mounts_are_read_as_pyxis_reads_them(text, mounts):
    assert container.mounts(text, "/home/alice") == mounts


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("data:/in", "not absolute paths; write SRC:DST"),
        ("/data:in", "not absolute paths"),
        ("/data,", "an empty part: not absolute paths"),
        ("/data:/in:ro+foo", "there is no flag 'foo'; flags are ro and rw"),
        ("/data:/", "/ is the image itself"),
        ("/data:/in:ro:rw", "there is no flag 'ro:rw'"),
    ],
)
def test_wrong_mounts_are_named(text, reported):
    with pytest.raises(StepError, match=".*".join(map(str, [reported.split(";")[0]]))):
        container.mounts(text, "/home/alice")


@pytest.mark.parametrize("text", ["1A", "A-B", "A,,B", "A="])
def test_wrong_variables_are_named(text):
    with pytest.raises(StepError, match="--container-env"):
        container.variables(text)


def test_relative_workdir_is_refused():
    with pytest.raises(StepError, match="--container-workdir=work: not an absolute path"):
        container.workdir("work")


@pytest.mark.parametrize("image", ["/a.sqsh", "./a.sif", "../a"])
def test_path_is_a_file(image):
    assert container.is_file(image)


def test_name_with_a_registry_before_a_hash():
    assert container.image_name("nvcr.io#nvidia/pytorch:24.01") == "nvcr.io/nvidia/pytorch:24.01"
    assert not container.is_file("debian:13")


def test_first_absent_source_is_named():
    asked = Options("debian", container.mounts("/a,/b,/c", "/"))
    assert "there is no /b here" in container.lacking(asked, lambda path: path == "/a")
    assert container.lacking(asked, lambda _: True) == ""


def test_plain_step_sees_no_home_and_cannot_write():
    plan = planned(Options("debian"))
    assert plan["command"][-2:] == ["/cache/a.squashfs", "/.isthmus/hold"]
    assert not {"--fakeroot", "--writable-tmpfs"} & set(plan["command"])
    assert not [word for word in plan["command"] if "/home/alice" in word]
    assert (plan["entrypoint"], plan["workdir"]) == ([], "/srv")


def test_options_become_apptainers():
    asked = Options("debian", (Mount("/a,b", "/x", read_only=True),), home=True, root=True, writable=True)
    words = planned(asked)["command"]
    assert {"--fakeroot", "--writable-tmpfs"} <= set(words)
    assert 'type=bind,"source=/a,b",destination=/x,ro' in words
    assert "type=bind,source=/home/alice,destination=/home/alice" in words


def test_words_of_the_image_give_way_to_options():
    plan = planned(Options("debian", workdir="/work", kept=("LANG",), entrypoint=True))
    assert (plan["workdir"], plan["entrypoint"]) == ("/work", ["/entry", "-x"])
    assert "LANG" in plan["kept"]


def test_image_without_words_starts_at_its_root():
    plan = planned(Options("debian", entrypoint=True), config={})
    assert (plan["workdir"], plan["entrypoint"]) == ("/", [])
