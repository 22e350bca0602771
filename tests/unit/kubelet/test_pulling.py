"""Whether an image is pulled, with what, and when again."""

import base64
import json

import pytest

from isthmus.kubelet.images.policy import Pull, back_off_s, credentials, decide, failed, refusal

DIGEST = f"app@sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("image", "policy", "missing", "present"),
    [
        ("app", None, Pull.PULL, Pull.PULL),
        ("app:latest", None, Pull.PULL, Pull.PULL),
        ("app:1", None, Pull.PULL, Pull.USE),
        (DIGEST, None, Pull.PULL, Pull.USE),
        ("app:1", "Always", Pull.PULL, Pull.PULL),
        ("app", "IfNotPresent", Pull.PULL, Pull.USE),
        ("app", "Never", Pull.REFUSE, Pull.USE),
        ("App", None, Pull.INVALID, Pull.INVALID),
        ("a b", "Never", Pull.INVALID, Pull.INVALID),
        ("", None, Pull.INVALID, Pull.INVALID),
    ],
)
def test_policy_decides(image, policy, missing, present):
    one = {"image": image, "imagePullPolicy": policy}
    assert (decide(one, False), decide(one, True)) == (missing, present)


@pytest.mark.parametrize(("pull", "reason"), [(Pull.INVALID, "InvalidImageName"), (Pull.REFUSE, "ErrImageNeverPull")])
def test_refusal_says_why(pull, reason):
    found = refusal({"image": "app"}, pull)
    assert found.reason == reason
    assert "; " in found.message


@pytest.mark.parametrize(("again", "reason"), [(False, "ErrImagePull"), (True, "ImagePullBackOff")])
def test_failure_keeps_its_cause(again, reason):
    found = failed("access denied; log in", again, "app")
    assert (found.reason, "access denied; log in" in found.message) == (reason, True)


@pytest.mark.parametrize(("failures", "wait_s"), [(0, 10), (1, 10), (2, 20), (5, 160), (6, 300), (1000, 300)])
def test_waits_double_up_to_five_minutes(failures, wait_s):
    assert back_off_s(failures) == wait_s


def secret(key, content):
    return {"data": {key: base64.b64encode(content.encode()).decode()}}


def test_credentials_are_merged_and_the_first_wins():
    one = secret(".dockerconfigjson", json.dumps({"auths": {"a": {"auth": "1"}, "b": {"auth": "2"}}}))
    two = secret(".dockercfg", json.dumps({"b": {"auth": "3"}, "c": {"auth": "4"}}))
    found = credentials([one, two])["auths"]
    assert {name: login["auth"] for name, login in found.items()} == {"a": "1", "b": "2", "c": "4"}


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"data": None},
        {"data": {".dockerconfigjson": "!"}},
        secret(".dockerconfigjson", "no json"),
        secret(".dockerconfigjson", "[]"),
        secret(".dockerconfigjson", "{}"),
        secret(".dockercfg", "[]"),
        secret("other", "{}"),
    ],
)
def test_secret_that_cannot_be_read_gives_nothing(broken):
    assert credentials([broken]) == {"auths": {}}
