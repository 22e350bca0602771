import hashlib
import json

import pytest

from isthmus.images import manifests
from isthmus.images.errors import UnknownImageError
from isthmus.model import images

IMAGE = images.parse("debian:13")
HEX = {arch: hashlib.sha256(arch.encode()).hexdigest() for arch in ("amd64", "arm64", "windows")}


def index(*platforms):
    rows = [
        {"digest": f"sha256:{HEX[key]}", "platform": {"os": system, "architecture": arch}}
        for key, system, arch in platforms
    ]
    return json.dumps({"manifests": rows})


def test_digest_of_a_manifest_is_its_hash():
    text = json.dumps({"layers": []})
    assert manifests.digest(IMAGE, text, "amd64") == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_index_gives_this_machines(arch):
    text = index(("windows", "windows", arch), ("amd64", "linux", "amd64"), ("arm64", "linux", "arm64"))
    assert manifests.digest(IMAGE, text, arch) == f"sha256:{HEX[arch]}"


def test_index_without_platforms_has_one_image():
    text = json.dumps({"manifests": [{"digest": f"sha256:{HEX['amd64']}"}]})
    assert manifests.digest(IMAGE, text, "amd64") == f"sha256:{HEX['amd64']}"


def test_index_without_this_machine_names_the_others():
    with pytest.raises(UnknownImageError, match="is not made for s390x; it is for: amd64"):
        manifests.digest(IMAGE, index(("amd64", "linux", "amd64"), ("arm64", "unknown", "unknown")), "s390x")


@pytest.mark.parametrize("text", ["", "<html>", "[]"])
def test_other_texts_are_no_manifest(text):
    with pytest.raises(UnknownImageError, match="has no manifest"):
        manifests.digest(IMAGE, text, "amd64")
