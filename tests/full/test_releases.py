"""The release before, beside this one, as they are during an upgrade: its own programs, from its commit.

What networkd writes to etcd is read by the daemon of before and the other way; its supervisor runs pods for this
kubelet.
"""

import json
import os
import subprocess
import sys

import pytest
import yaml

from isthmus.network.state import forms
from isthmus.network.state.codec import decode, encode, key_of
from isthmus.network.state.keys import Keys
from isthmus.podproto import plan as plans
from isthmus.podproto import reports, versions
from tests.integration.conftest import POD_UID, Supervised
from tests.repo.tree import ROOT
from tests.support.files.passable import passable
from tests.support.pods.plans import container, mount, plan, probe, volume
from tests.support.servers import apptainer_host
from tests.unit.network import test_codec as values

BEFORE = yaml.safe_load((ROOT / "docs/releases.yml").read_text())["releases"][-1]
KEYS = Keys("blue")
# Runs with the packages of before: reads each key and value, and writes it again; null for what it cannot read.
READS = """
import importlib, json, sys

def module(name):
    try:
        return importlib.import_module("isthmus.network.state." + name)
    except ImportError:
        return importlib.import_module("isthmus.network." + name)

codec, keys = module("codec"), module("keys")
try:
    form = module("forms").FORM
except ImportError:
    form = 1
found = []
for path, text in json.load(sys.stdin):
    try:
        found.append(codec.encode(codec.decode(keys.Keys("blue"), path, text)))
    except keys.StoredError:
        found.append(None)
print(json.dumps({"form": form, "found": found}))
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The packages of the release before."""
    made = subprocess.run(["git", "-C", ROOT, "archive", BEFORE["commit"], "src"], capture_output=True, check=False)
    assert made.returncode == 0, f"{made.stderr.decode()}: clone the whole history"
    folder = passable(tmp_path_factory.mktemp("release"))
    subprocess.run(["tar", "--extract", "--directory", folder], input=made.stdout, check=True)
    return folder / "src"


def test_daemon_of_before_reads_all_that_is_written_for_it_and_nothing_else(before):
    some = [values.NODE, values.USER, values.JOB, values.LEASE, values.FLAT, values.ATTACHMENT, values.GUARD]
    some += [values.EMPTY, values.GATEWAY, values.ACTIVE, values.HEARD, values.EXPOSURE]
    written = [(KEYS.path(key_of(value)), encode(value)) for value in some]
    done = subprocess.run(
        [sys.executable, "-c", READS],
        input=json.dumps(written),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(before)},
    )
    answer = json.loads(done.stdout)
    for value, (path, text), again in zip(some, written, answer["found"], strict=True):
        assert again == (text if forms.of(value) <= answer["form"] else None), path
        # What it writes is read here.
        assert again is None or decode(KEYS, path, again) == value


@pytest.fixture(scope="module")
def host(before, tmp_path_factory):
    """A node that has the release before."""
    made = apptainer_host.start(passable(tmp_path_factory.mktemp("host")), f"isthmus-before-{os.getpid()}", before)
    try:
        yield made
    finally:
        apptainer_host.stop(made)


@pytest.fixture
def pod(host):
    """A pod of the ordinary user."""
    made = Supervised(host, apptainer_host.USER)
    yield made
    made.end()


def as_written(pod, *containers, **rest):
    """Return a plan as this kubelet writes it for the supervisor of before."""
    image = str(pod.host.image)
    given = plan(*({**each, "image": image} for each in containers), **rest, uid=POD_UID)
    return json.loads(json.dumps(plans.to_json(plans.read(given), versions.SPOKEN[0])))


def test_pod_runs_to_its_end_under_the_supervisor_of_before(pod):
    script = "echo $WORD >/data/word; cat /data/word; echo gone >/dev/termination-log; exit 3"
    main = container("main", script, env=[{"name": "WORD", "value": "xyzzy"}], mounts=[mount("shared", "/data")])
    kubelet = pod.run(as_written(pod, main, volumes=[volume("shared", "dir")]))
    report = reports.checked(kubelet.ended())
    hello = reports.checked_hello(kubelet.hellos[0])
    assert versions.agreed(hello) == 1
    reported = report["containers"]["main"]
    assert (reported["reason"], reported["exit_code"], reported["message"]) == ("Error", 3, "gone\n")
    assert pod.exit_status() == 1


def test_pod_is_asked_and_stopped_under_the_supervisor_of_before(pod):
    script = "trap 'echo bye; exit 0' TERM; echo here; while :; do sleep 0.1; done"
    ready = probe("exec", argv=["true"])
    kubelet = pod.run(as_written(pod, container("main", script, readiness=ready)))
    kubelet.until("main", state="running", ready=True)
    assert kubelet.exec("main", "cat", stdin=False).finish()[0] == 0
    code, out, _ = kubelet.exec("main", "sh", "-c", "echo $((6 * 7)); exit 4").finish()
    assert (code, out) == (4, b"42\n")
    log = kubelet.logs("main", follow=True)
    log.wait_for(b"here")
    kubelet.send({"type": "stop", "grace_s": 5})
    report = reports.checked(kubelet.ended())
    assert report["containers"]["main"]["exit_code"] == 0
    assert log.finish()[1] == b"here\nbye\n"
