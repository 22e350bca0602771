"""Who is let in, what is lacking, and addresses that are none."""

import json
from base64 import b64decode, b64encode

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.images import registry
from isthmus.registry import settings

RECIPES = [{"name": name, "key": "k1", "tags": ["k1", "latest"]} for name in ("busybox", "mpi")]


def found(**digests):
    """Images of a registry where these names have these digests per tag; "" is not there."""
    return [
        {"name": name, "tag": tag, "digest": digest}
        for name, each in digests.items()
        for tag, digest in zip(("k1", "latest"), each, strict=True)
    ]


@pytest.mark.parametrize("address", ["ctl:5000", "registry.example.test:443", "10.0.0.1:65535"])
def test_endpoint_is_host_and_port(address):
    endpoint = registry.registry_endpoint(address)
    assert f"{endpoint['host']}:{endpoint['port']}" == address


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ctl", "'ctl' is no address of a registry; write host:port, without a scheme or a path"),
        ("ctl:5000/isthmus", "without a scheme or a path"),
        ("https://ctl:5000", "without a scheme or a path"),
        ("ctl:", "is no address"),
        ("ctl:0", "'ctl:0' has no usable port; write one from 1 to 65535"),
        ("ctl:65536", "no usable port"),
    ],
)
def test_endpoint_refuses_what_is_none(address, message):
    with pytest.raises(InputError, match=message):
        registry.registry_endpoint(address)


LIMITS = {"service": "ctl:5000", "quota_gib": 20, "quotas": {"bob": 0.5, "carol": 0}, "reserve_gib": 5}


def test_settings_let_the_accounts_in_with_their_quotas(tmp_path):
    path = tmp_path / "tokend.json"
    path.write_text(registry.registry_settings({"bob": "two", "alice": "one", "carol": "three"}, "isthmus", LIMITS))
    read = settings.read(path)
    assert (read.service, read.keeper, read.reserve_bytes) == ("ctl:5000", "isthmus", 5 << 30)
    assert {name: each.quota_bytes for name, each in read.accounts.items()} == {
        "alice": 20 << 30,
        "bob": 1 << 29,
        "carol": 0,
    }
    assert read.known("Basic " + b64encode(b"alice:one").decode()) == "alice"
    assert read.known("Basic " + b64encode(b"alice:two").decode()) == ""


def test_settings_are_equal_for_equal_input_and_hold_no_password():
    written = registry.registry_settings({"alice": "s3cret", "bob": "other"}, "isthmus", LIMITS)
    assert written == registry.registry_settings({"bob": "other", "alice": "s3cret"}, "isthmus", LIMITS)
    assert "s3cret" not in written


@pytest.mark.parametrize(
    ("users", "taken"),
    [(["alice", "bob"], []), (["mpi", "alice", "library"], ["library", "mpi"]), (["isthmus"], ["isthmus"])],
)
def test_names_that_are_the_sites_are_reported(users, taken):
    assert registry.registry_taken(users) == taken


def test_authfile_has_the_account_for_each_address():
    written = json.loads(registry.registry_authfile(["ctl:5000", "ctl:5443"], {"isthmus": "secret"}))
    assert {name: b64decode(entry["auth"]) for name, entry in written["auths"].items()} == {
        "ctl:5000": b"isthmus:secret",
        "ctl:5443": b"isthmus:secret",
    }


@pytest.mark.parametrize(
    ("busybox", "lacking"),
    [(("d", "d"), []), (("", ""), ["busybox"]), (("d", ""), ["busybox"]), (("d", "old"), ["busybox"])],
)
def test_lacking_is_what_is_not_there_under_both_tags(busybox, lacking):
    asked = found(busybox=busybox, mpi=("e", "e"))
    assert [recipe["name"] for recipe in registry.registry_lacking(RECIPES, asked)] == lacking


def test_archive_is_pushed_once_and_its_other_tags_are_names_of_it():
    lacking = [{"name": "mpi", "archive": "/cache/mpi-k1.tar", "tags": ["k1", "latest"]}]
    assert registry.registry_copies(lacking, "/tmp/x") == [
        {"src": "/cache/mpi-k1.tar", "dest": "/tmp/x/mpi.tar", "mode": "0600"}
    ]
    pushes = registry.registry_pushes(lacking, "/tmp/x", "ctl:5000/isthmus", "/etc/auth.json")
    first = "docker://ctl:5000/isthmus/mpi:k1"
    assert [words[-2:] for words in pushes] == [
        ["oci-archive:/tmp/x/mpi.tar", first],
        [first, "docker://ctl:5000/isthmus/mpi:latest"],
    ]
    assert all("--authfile=/etc/auth.json" in words for words in pushes)


def test_images_file_gives_reference_and_digest():
    written = registry.registry_images_file(RECIPES, found(busybox=("d", "d"), mpi=("e", "e")), "ctl:5000")
    assert json.loads(written) == {
        "schema": 1,
        "registry": "ctl:5000",
        "images": {
            "busybox": {"reference": "ctl:5000/isthmus/busybox:k1", "digest": "d"},
            "mpi": {"reference": "ctl:5000/isthmus/mpi:k1", "digest": "e"},
        },
    }
