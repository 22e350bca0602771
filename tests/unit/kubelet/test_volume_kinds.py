"""A new kind of volumes is two files, one of the kubelet and one of the supervisor: here they are added, and work."""

import json
import sys
from pathlib import Path

import pytest

from isthmus.kubelet import volumes as kubelet_folder
from isthmus.kubelet.admit import pod as refusals
from isthmus.kubelet.translate import pod as translate
from isthmus.kubelet.volumes import registry as kubelet
from isthmus.podproto import plan as plans
from isthmus.supervisor import volumes as supervisor_folder
from isthmus.supervisor.volumes import mounts
from isthmus.supervisor.volumes import registry as supervisor
from tests.support.pods.objects import SETTINGS, pod, resolved

OF_KUBELET = """
from isthmus.kubelet.volumes.kind import Kind
from isthmus.model.pod_inputs import Wanted
from isthmus.podproto.plan import Volume


class Scratch(Kind):
    name = "scratch"

    def problems(self, source):
        if not source.get("pool"):
            yield "no pool; name one"

    def wanted(self, pod, volume, source):
        return Wanted(config_maps=frozenset({source["pool"]}), services=False)

    def plan(self, of, source):
        return Volume(of.name, "scratch", options=(("pool", source["pool"]),))


KIND = Scratch()
"""
OF_SUPERVISOR = """
from isthmus.supervisor.volumes.kind import Kind


class Scratch(Kind):
    is_read_only = True

    def place(self, folders, volume):
        return folders.base / dict(volume.options)["pool"] / volume.name

    def make(self, folders, volume):
        self.place(folders, volume).mkdir(parents=True)


KIND = Scratch()
"""


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Add a kind; nothing else is changed."""
    for package, text in ((kubelet_folder, OF_KUBELET), (supervisor_folder, OF_SUPERVISOR)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "scratch.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    caches = (kubelet._found, supervisor._found)
    for cache in caches:
        cache.cache_clear()
    yield
    for package, cache in zip((kubelet_folder, supervisor_folder), caches, strict=True):
        sys.modules.pop(f"{package.__name__}.scratch", None)
        cache.cache_clear()


def volume(**source):
    return pod(volumes=[{"name": "v", **source}])


def test_added_kind_is_refused_asked_for_planned_and_made(scratch, tmp_path):
    assert refusals.problems(volume(scratch={}), SETTINGS) == ["volume v: no pool; name one"]
    whole = volume(scratch={"pool": "fast"})
    assert refusals.problems(whole, SETTINGS) == []
    assert translate.wanted(whole).config_maps == {"fast"}
    plan = plans.read(json.loads(json.dumps(plans.to_json(translate.plan(whole, resolved())))))
    supervisor.check(plan.volumes)
    mounts.make(mounts.Folders(tmp_path), plan.volumes)
    assert (tmp_path / "fast/v").is_dir()
    assert supervisor.of(plan.volumes[0]).is_read_only


def test_kind_that_is_not_there_is_refused_by_both():
    reported = refusals.problems(volume(scratch={"pool": "fast"}), SETTINGS)
    assert reported == [f"volume v: scratch is not offered; use one of {', '.join(sorted(kubelet.kinds()))}"]


@pytest.mark.parametrize("kind", ["scratch", "mounts", "registry", "../x", "", "os", "kind"])
def test_supervisor_takes_no_module_that_is_no_kind(kind):
    with pytest.raises(plans.PlanError, match="which this supervisor does not know"):
        supervisor.check([plans.Volume("v", kind)])


def test_each_kind_of_a_plan_has_its_file():
    """The words by which the kubelet's kinds name those of the supervisor."""
    samples = {
        **{"emptyDir": [{}, {"medium": "Memory"}], "hostPath": [{"path": "/x"}], "image": [{"reference": "app"}]},
        **{"configMap": [{"optional": True}], "secret": [{"optional": True}], "downwardAPI": [{}], "projected": [{}]},
        **{"persistentVolumeClaim": [{"claimName": "c"}], "ephemeral": [{}]},
    }
    assert samples.keys() == kubelet.kinds().keys()
    claim = {"spec": {"local": {"path": "/x"}}}
    known = resolved(volumes={"c": claim, "web-v": claim})
    planned = [
        translate.plan(volume(**{name: one}), known).volumes[0] for name, some in samples.items() for one in some
    ]
    supervisor.check(planned)
    folder = Path(mounts.__file__).parent
    assert {one.kind for one in planned} == {
        path.stem for path in folder.glob("*.py") if "\nKIND = " in path.read_text()
    }
