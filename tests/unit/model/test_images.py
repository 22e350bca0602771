import pytest

from isthmus.model import images

HEX = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("debian", "docker://docker.io/library/debian:latest"),
        ("debian:13", "docker://docker.io/library/debian:13"),
        ("user/tool", "docker://docker.io/user/tool:latest"),
        ("docker://ctl:5000/isthmus/debian", "docker://ctl:5000/isthmus/debian:latest"),
        ("localhost/tool:a_B-1.2", "docker://localhost/tool:a_B-1.2"),
        (f"quay.io/a/b/c@sha256:{HEX}", f"docker://quay.io/a/b/c@sha256:{HEX}"),
        (f"quay.io/a:1@sha256:{HEX}", f"docker://quay.io/a@sha256:{HEX}"),
        ("oci-archive:some/file.tar", "oci-archive:some/file.tar"),
        ("oci:/layout:tag", "oci:/layout:tag"),
    ],
)
def test_reference_in_full(text, full):
    assert str(images.parse(text)) == full


@pytest.mark.parametrize(
    "text",
    ["", "Debian", "a b", "debian:", "debian@sha256:1", "/abs", "http://x/y", "oci-archive:", "-x", "a//b", "--help"],
)
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match=r"is no image; write e\.g\.|names no file"):
        images.parse(text)


def test_registry_is_where_to_log_in():
    assert images.parse("ctl:5000/isthmus/debian").registry == "ctl:5000"
    assert images.parse("oci-archive:a/b").registry == ""


def test_digest_replaces_the_tag():
    assert str(images.parse("ctl:5000/a:1").at(f"sha256:{HEX}")) == f"docker://ctl:5000/a@sha256:{HEX}"
    assert str(images.parse("oci:a:1").at(f"sha256:{HEX}")) == "oci:a:1"
