"""Images of pods: policy, credentials and pauses, with a puller that fetches nothing."""

import asyncio
import base64
import errno
import json
import os
import threading
import time
from dataclasses import asdict

import pytest

from isthmus.clients import process, squashfs
from isthmus.clients.process import Finished
from isthmus.images.errors import DeniedError, NoSpaceError
from isthmus.images.known import Known
from isthmus.images.workspace import Workspace
from isthmus.kubelet.images import manager as images
from isthmus.kubelet.images.manager import Images, ImageWaitError
from isthmus.model.image_accounts import Account, Accounts
from isthmus.model.images import Pulled
from tests.support.wait import wait

DIGEST = "sha256:" + "b" * 64
AUTHS = {"ctl:5000": {"auth": "YTpi"}}
SECRET = {"data": {".dockerconfigjson": base64.b64encode(json.dumps({"auths": AUTHS}).encode()).decode()}}


class Registry:
    """Pulls into the cache, or refuses."""

    def __init__(self, config):
        self.pulls, self.refuses, self.config, self.auths = 0, False, config, None

    def __call__(self, image, place):
        self.pulls += 1
        self.auths = place.authfile and json.loads(place.authfile.read_text())
        if place.authfile:
            assert place.authfile.stat().st_mode & 0o777 == 0o600
        if self.refuses:
            raise DeniedError(f"ctl:5000 does not give {image}")
        path = place.cache / f"{DIGEST.replace(':', '-')}.2.squashfs"
        path.touch()
        config = place.cache / ".config" / f"{DIGEST.replace(':', '-')}.json"
        config.parent.mkdir(exist_ok=True)
        config.write_text(json.dumps(self.config))
        return Pulled(1, str(image), DIGEST, path, 0, False, 0.0)


FILES = {
    "etc/passwd": "root:x:0:0:::\nweb:x:33:34::/srv:/bin/sh\nbroken\n",
    "etc/group": "web:x:34:\nstaff:x:50:web\n",
}


@pytest.fixture
def registry():
    return Registry({"Entrypoint": ["/run"], "Cmd": ["x"], "Env": ["A=1"], "User": "web:web", "WorkingDir": "/srv"})


@pytest.fixture
def got(tmp_path, registry, monkeypatch):
    monkeypatch.setattr(squashfs, "read", lambda file, path: FILES[path])
    made = Images(Workspace(tmp_path, tmp_path, None, "amd64"), registry, back_off_s=lambda failures: 3600)
    return lambda policy="IfNotPresent", name="ctl:5000/web", secrets=(): asyncio.run(
        made.get({"image": name, "imagePullPolicy": policy}, secrets)
    )


def test_image_reports_what_it_starts(got):
    image = got()
    assert (image.entrypoint, image.cmd, image.env, image.workdir) == (("/run",), ("x",), ("A=1",), "/srv")
    assert (image.id, image.accounts.named("web")) == (f"ctl:5000/web@{DIGEST}", Account("web", 33, 34, "/srv"))
    assert image.accounts.members == {"web": (50,)}


@pytest.mark.parametrize(("policy", "pulls"), [("IfNotPresent", 1), ("Always", 2), ("Never", 1)])
def test_policy_says_whether_the_registry_is_asked(got, registry, policy, pulls):
    got()
    got(policy)
    assert registry.pulls == pulls


def test_absent_image_is_never_pulled_under_never(got, registry):
    with pytest.raises(ImageWaitError) as reported:
        got("Never")
    assert (reported.value.state.reason, registry.pulls) == ("ErrImageNeverPull", 0)


def test_failure_pauses_pods_of_the_same_credentials(got, registry):
    registry.refuses = True
    reasons = []
    for secrets in ((), (), (SECRET,)):
        with pytest.raises(ImageWaitError) as reported:
            got(secrets=secrets)
        reasons.append(reported.value.state.reason)
    assert (reasons, registry.pulls) == (["ErrImagePull", "ImagePullBackOff", "ErrImagePull"], 2)


def test_pull_secret_is_in_memory_only_while_it_is_used(got, registry, tmp_path):
    got(secrets=(SECRET,))
    assert registry.auths == {"auths": AUTHS}
    assert "YTpi" not in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_pods_at_once_ask_the_registry_once(registry, tmp_path):
    async def use():
        made = Images(Workspace(tmp_path, tmp_path, None, "amd64"), registry)
        container = {"image": "ctl:5000/web", "imagePullPolicy": "Always"}
        return await asyncio.gather(*(made.get(container, ()) for _ in range(20)))

    registry.config = {}
    assert len({image.path for image in asyncio.run(use())}) == 1
    assert registry.pulls == 1


def test_wrong_name_is_reported(got, registry):
    with pytest.raises(ImageWaitError) as reported:
        got(name="Not An Image")
    assert (reported.value.state.reason, registry.pulls) == ("InvalidImageName", 0)


def test_image_without_a_configuration_starts_nothing_by_itself(got, registry):
    registry.config = {}
    assert got().entrypoint == ()
    assert images.described(images.parse("oci:x"), DIGEST, None, {}, Accounts()).id == DIGEST


def test_registry_that_stalls_holds_up_its_own_images_alone(registry, tmp_path, got):
    registry.config, go_on, begun = {}, threading.Event(), []
    got(name="stalled.test/cached")

    def pull(image, place):
        if image.registry == "stalled.test":
            begun.append(image)
            wait(lambda: go_on.is_set() or place.unwanted(), interval_s=0.01)
        return registry(image, place)

    async def use():
        made = Images(Workspace(tmp_path, tmp_path, None, "amd64"), pull)
        stalled = [{"image": f"stalled.test/{number}", "imagePullPolicy": "Always"} for number in range(40)]
        waiting = [asyncio.ensure_future(made.get(one, ())) for one in stalled]
        while not begun:
            await asyncio.sleep(0.01)
        for name, policy in (("stalled.test/cached", "IfNotPresent"), ("ctl:5000/other", "Always")):
            async with asyncio.timeout(20):
                await made.get({"image": name, "imagePullPolicy": policy}, ())
        began_s = time.monotonic()
        made.stop()
        await asyncio.gather(*waiting, return_exceptions=True)
        return time.monotonic() - began_s

    try:
        assert asyncio.run(use()) < 10
    finally:
        go_on.set()


def test_failure_is_known_while_the_image_is_tried_again(registry, tmp_path):
    made, registry.refuses = Images(Workspace(tmp_path, tmp_path, None, "amd64"), registry), True
    assert made.failure("ctl:5000/web") is None
    with pytest.raises(ImageWaitError):
        asyncio.run(made.get({"image": "ctl:5000/web"}, ()))
    assert made.failure("ctl:5000/web").reason == "ErrImagePull"


@pytest.mark.parametrize(("freed", "pulls"), [(5, 2), (0, 1)])
def test_full_home_is_met_by_removing_what_nobody_uses(tmp_path, registry, monkeypatch, freed, pulls):
    monkeypatch.setattr(squashfs, "read", lambda file, path: FILES[path])
    tried = []

    def pull(image, place):
        tried.append(image)
        if len(tried) == 1:
            raise NoSpaceError("no space is left")
        return registry(image, place)

    made = Images(Workspace(tmp_path, tmp_path, None, "amd64"), pull, lambda: freed)
    wanted = made.get({"image": "ctl:5000/web", "imagePullPolicy": "Always"}, ())
    if freed:
        assert asyncio.run(wanted).digest == DIGEST
    else:
        with pytest.raises(ImageWaitError, match="no space is left"):
            asyncio.run(wanted)
    assert len(tried) == pulls


def test_pull_is_a_process_of_its_own(tmp_path, registry, monkeypatch):
    """A large image's tree takes hundreds of MiB, and the kubelet's memory is all pods'."""
    registry.config, started = {}, []

    def run(argv, *given):
        started.append([*map(str, argv)][1:])
        pulled = registry(images.parse("ctl:5000/web"), Workspace(tmp_path, tmp_path, None, "amd64"))
        return Finished(json.dumps({"words": [], "pulled": asdict(pulled)}, default=str), "")

    monkeypatch.setattr(process, "run_patiently", run)
    made = Images(Workspace(tmp_path, tmp_path, None, "amd64"))
    assert asyncio.run(made.get({"image": "ctl:5000/web"}, ())).digest == DIGEST
    assert started == [["-I", "-m", "isthmus.images.apart"]]


def test_few_failures_are_remembered(tmp_path, registry, monkeypatch):
    registry.refuses = True
    monkeypatch.setattr(images, "_KEPT", 3)
    monkeypatch.setattr(squashfs, "read", lambda file, path: FILES[path])

    async def use():
        made = Images(Workspace(tmp_path, tmp_path, None, "amd64"), registry)
        for number in range(10):
            with pytest.raises(ImageWaitError):
                await made.get({"image": f"ctl:5000/web{number}"}, ())
            made._accounts(str(number), tmp_path)
        return len(made._failed), len(made._read)

    assert all(count <= 3 for count in asyncio.run(use()))


def stale(*_):
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


@pytest.mark.parametrize("phase", ["look", "pull", "note"])
def test_cache_that_is_stale_is_reported(tmp_path, registry, monkeypatch, phase):
    """Where the user looks: the container waits, with the reason."""
    registry.config = {}
    if phase != "pull":
        monkeypatch.setattr(Known, "digest" if phase == "look" else "remember", stale)
    made = Images(Workspace(tmp_path, tmp_path, None, "amd64"), stale if phase == "pull" else registry)
    with pytest.raises(ImageWaitError) as reported:
        asyncio.run(made.get({"image": "ctl:5000/web", "imagePullPolicy": "Always"}, ()))
    assert reported.value.state.reason == "ErrImagePull"
    assert "Stale file handle" in reported.value.state.message
