"""Images made to change what lies outside them, pulled by the user whose home they aim at; traps in a cache."""

import json
import shlex

import pytest

from tests.support.attacks.hostile_images import ARCHIVES, WAYS
from tests.support.clusters.cluster import ROOT

pytestmark = pytest.mark.attack("S2")
MAKER = (ROOT / "tests/support/attacks/hostile_images.py").read_text()
STATE = "cd {work}/target && find . -printf '%p %y %m %s %T@ %l\\n' | sort && cat existing"
# What is in the way -> how it is laid, and what the user then reads.
TRAPS = {
    "the cache is a file": ("mkdir .isthmus && touch .isthmus/images", "File exists; "),
    "the cache is a FIFO": ("mkdir .isthmus && mkfifo .isthmus/images", "File exists; "),
    "the cache is another's": ("mkdir .isthmus && ln -s /usr/share .isthmus/images", "it is another user's; "),
    "the cache is a dangling link": ("mkdir .isthmus && ln -s /none .isthmus/images", "File exists; "),
    ".isthmus is a link to another's": ("ln -s /usr/share .isthmus", "is a link, which is not followed; "),
    "the credentials are a FIFO": ("mkdir .apptainer && mkfifo .apptainer/docker-config.json", "it is no file; "),
    "the credentials are another's": ("mkdir .apptainer && ln -s /etc/shadow .apptainer/docker-config.json", "; "),
    "the home is read-only": ("chmod 500 .", "Permission denied; "),
    "the scratch folder is read-only": ("chmod 500 tmp", "Permission denied; "),
}


@pytest.fixture(scope="module")
def work(login, attacker):
    """The attacker's layouts, and a folder that they are aimed at."""
    path = login.run_as(attacker, "mktemp -d ~/.isthmus-test-XXXXXX")
    login.run_as(attacker, f"cd {path}; mkdir target scratch; echo mine > target/existing; mkfifo target/fifo")
    login.run_as(attacker, f"cat > {path}/maker.py <<'END'\n{MAKER}\nEND")
    login.run_as(attacker, f"python3 {path}/maker.py {path}/layouts {path}/target")
    yield path
    login.output(f"rm -rf {path}")


def pull(login, user, work, way):
    layout = f"{work}/layouts/{way.replace(' ', '-')}"
    image = shlex.quote(f"{'oci-archive' if way.endswith('.tar') else 'oci'}:{layout}")
    return login.try_as(user, f"HOME={work} APPTAINER_TMPDIR={work}/scratch isthmus pull --json {image}")


@pytest.mark.parametrize("way", WAYS)
def test_image_writes_outside(way, login, attacker, work):
    """An image's links lead Apptainer to write into the home of the user who pulls it."""
    before = login.run_as(attacker, STATE.format(work=work))
    done = pull(login, attacker, work, way)
    assert login.run_as(attacker, STATE.format(work=work)) == before
    assert login.run_as(attacker, f"ls -A {work}/scratch") == ""
    # Either the links do no harm where they are, or the message says which image and which entry.
    assert done.rc == 0 or f"layouts/{way.replace(' ', '-')}" in done.stderr
    assert done.rc == 0 or "is refused: in layer " in done.stderr


@pytest.mark.parametrize("way", ARCHIVES)
def test_archive_writes_outside(way, login, attacker, work):
    """An OCI archive's own entries lead skopeo to write into the home of the user who pulls it."""
    before = login.run_as(attacker, STATE.format(work=work))
    done = pull(login, attacker, work, f"{way}.tar")
    assert login.run_as(attacker, STATE.format(work=work)) == before
    assert done.rc == 1
    assert "is refused: it is no archive that an honest builder writes" in done.stderr
    assert login.run_as(attacker, f"ls -A {work}/scratch") == ""


def test_honest_archive(login, attacker, work):
    """An archive that has nothing hostile is no attack."""
    done = pull(login, attacker, work, "honest.tar")
    assert done.rc == 0, done.stderr


def test_image_with_the_writers_own_files(login, attacker, work):
    """An image that brings all of Apptainer's own files as ordinary ones is no attack."""
    done = pull(login, attacker, work, "honest")
    assert done.rc == 0, done.stderr
    path = json.loads(done.stdout)["path"]
    assert login.run_as(attacker, f"unsquashfs -cat {path} .singularity.d/runscript").startswith("#!/bin/sh")


@pytest.mark.parametrize("trap", TRAPS)
def test_trap_in_the_home(trap, login, attacker, work):
    """The cache, the credentials or the folder to unpack in are not what they seem."""
    lay, reported = TRAPS[trap]
    home = login.run_as(attacker, f"mktemp -d {work}/home.XXXXXX")
    login.run_as(attacker, f"cd {home}; mkdir tmp; {lay}")
    one = f"cd {home}; HOME={home} APPTAINER_TMPDIR={home}/tmp timeout 30 isthmus pull oci:{work}/layouts/honest"
    done = login.try_as(attacker, one)
    assert (done.rc, done.stdout) == (1, "")
    assert reported in done.stderr
    left = login.run_as(attacker, f"cd {home}; find . -name '*.squashfs' -o -name '*.part' -o -name '.isthmus-pull*'")
    assert left == ""
    login.run_as(attacker, f"chmod -R u+rwx {home}")
