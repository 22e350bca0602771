"""What the site offers is read, or refused with the remedy."""

import json

import pytest

from isthmus.filters.workloads import offer as workloads
from isthmus.workloads import offer
from isthmus.workloads.offer import WorkloadError


@pytest.fixture
def file(tmp_path):
    """As role workloads writes it."""
    site = {"obtained": {"mpi-operator": {"version": "1.2.3"}}, "folder": str(tmp_path), "images": {"a": "b"}}
    path = tmp_path / "workloads.json"
    path.write_text(workloads.workloads_index(["mpi"], site))
    return path


def test_what_the_role_writes_is_read(file, tmp_path):
    mpi = offer.read(file)["mpi"]
    assert (mpi.version, mpi.manifest, mpi.chart) == ("1.2.3", tmp_path / "mpi/manifest.yaml", tmp_path / "mpi/chart")
    assert mpi.examples == []


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (None, "is missing: the site offers no workloads here; an admin writes it again with playbooks/workloads.yml"),
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        (json.dumps({"schema": 2, "workloads": {}}), "schema 2 is not 1"),
        (json.dumps({"schema": 1, "workloads": {"mpi": {"images": {}}}}), "KeyError"),
    ],
)
def test_wrong_file_is_reported(file, text, reported):
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(WorkloadError) as refused:
        offer.read(file)
    assert str(file) in str(refused.value)
    assert reported in str(refused.value)


@pytest.mark.parametrize(("name", "reported"), [("mpii", "did you mean mpi?"), ("argo", "it offers: mpi")])
def test_unknown_name_is_reported(file, name, reported):
    with pytest.raises(WorkloadError, match=reported):
        offer.pick(offer.read(file), name)


@pytest.mark.parametrize("text", [None, "a: [b"])
def test_manifest_that_cannot_be_read_is_reported(file, tmp_path, text):
    (tmp_path / "mpi").mkdir()
    if text:
        (tmp_path / "mpi/manifest.yaml").write_text(text)
    with pytest.raises(WorkloadError, match=r"(?s)manifest.yaml.*playbooks/workloads.yml"):
        offer.read(file)["mpi"].objects()
