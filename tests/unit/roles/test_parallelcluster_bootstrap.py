"""What a node of ParallelCluster fetches at its start, from a folder in place of a bucket: nothing wrong stays."""

import io
import subprocess
import tarfile
from hashlib import sha256

import pytest

from tests.repo.tree import ROOT

SCRIPT = ROOT / "roles/provider_parallelcluster/files/bootstrap.sh"
AWS = ROOT / "molecule/parallelcluster/files/aws"
ADMIN = "run playbooks/create.yml"


def archive(setup):
    """Return an archive whose setup.sh says this, and its name."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("setup.sh")
        member.size, member.mode = len(setup), 0o755
        tar.addfile(member, io.BytesIO(setup))
    return content.getvalue(), sha256(content.getvalue()).hexdigest()


GOOD, NAME = archive(b'#!/bin/sh\necho "set up $1 of $2"\n')


class Machine:
    """One on which the script runs; its paths are below a folder."""

    def __init__(self, folder):
        self.bucket, self.cache, self.log, self.bin = (folder / name for name in ("bucket", "cache", "log", "bin"))
        (self.bucket / "site/content").mkdir(parents=True)
        self.bin.mkdir()
        self.script = folder / "bootstrap.sh"
        places = {"/var/log/parallelcluster": self.log, "/var/cache/isthmus": self.cache}
        self._copy(SCRIPT, self.script, places)
        self._copy(AWS, self.bin / "aws", {"/home/.s3": self.bucket})
        (self.bin / "logger").write_text("#!/bin/sh\ncat >/dev/null\n")
        (self.bin / "logger").chmod(0o755)

    @staticmethod
    def _copy(source, target, places):
        text = source.read_text()
        for place, other in places.items():
            assert place in text
            text = text.replace(place, str(other))
        target.write_text(text)
        target.chmod(0o755)

    def has(self, current, **content):
        """Put these into the bucket."""
        (self.bucket / "site/current").write_text(current)
        for name, data in content.items():
            (self.bucket / f"site/content/{name.removeprefix('_')}.tar").write_bytes(data)

    def run(self):
        """Run the script as ParallelCluster does."""
        command = ["bash", self.script, "compute", "lab", "s3://site"]
        path = {"PATH": f"{self.bin}:/usr/bin:/bin"}
        return subprocess.run(command, env=path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_what_the_bucket_names_is_run(machine):
    machine.has(f"{NAME}\n", **{f"_{NAME}": GOOD})
    assert machine.run().returncode == 0
    assert [one.name for one in machine.cache.iterdir()] == [NAME]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (None, f"s3://site/current cannot be read; {ADMIN}, and let this node's role read the bucket"),
        (("no digest\n", {}), f"s3://site/current has no sha256; {ADMIN}"),
        (("../../../etc/passwd\n", {}), f"s3://site/current has no sha256; {ADMIN}"),
        ((f"{NAME}\n", {}), f"s3://site/content/{NAME}.tar cannot be read; {ADMIN}"),
        ((f"{NAME}\n", {f"_{NAME}": GOOD + b"\0"}), f"content/{NAME}.tar has sha256 "),
    ],
    ids=["nothing", "no digest", "a path", "no archive", "another archive"],
)
def test_missing_or_wrong_object_is_refused_and_nothing_stays(machine, objects, message):
    if objects:
        machine.has(objects[0], **objects[1])
    refused = machine.run()
    assert refused.returncode
    assert f"isthmus-bootstrap: {message}" in refused.stderr
    assert message in (machine.log / "isthmus-bootstrap.log").read_text()
    assert [*machine.cache.iterdir()] == []


def test_content_that_fails_says_why(machine):
    bad, name = archive(b"#!/bin/sh\necho no munge key >&2\nexit 3\n")
    machine.has(f"{name}\n", **{f"_{name}": bad})
    refused = machine.run()
    assert refused.returncode
    assert "isthmus-bootstrap: setup of compute failed: no munge key" in refused.stderr
