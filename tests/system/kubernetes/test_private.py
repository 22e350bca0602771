"""What a cluster leaves in the home is its user's alone, from the start to the end, whatever the umask."""

from pathlib import Path

import pytest

from tests.support.clusters.user_clusters import namespace

# What containers write to volumes has the modes that they give; the folder above is closed, and an fsGroup is a
# subordinate id of the user's. Images may be older than the cluster, and than this umask.
OPEN = r"""find ~/.isthmus -path '*/.isthmus/volumes/*/*' -prune -o ! -type l -perm /077 \
    ! \( -path '*/.isthmus/volumes/*' ! -group "$(id -g)" ! -perm /007 \) \
    \( ! -path '*/.isthmus/images/*' -o -newer ~/.isthmus/cluster/lock \) -printf '%P %m\n'"""
POD = (Path(__file__).parent / "manifests/private.yml").read_text()


def lived(space):
    """A pod with logs, exec and volumes; returns its log."""
    space.ready("pod/writer")
    space.kubectl("exec writer -- sh -c 'echo seen > /own/file; cat /text/text'")
    return space.kubectl("logs writer")


@pytest.fixture(scope="module")
def log(space):
    return lived(space)


def test_nothing_is_open_while_a_pod_runs(space, log):
    assert space.cluster.login.run_as(space.cluster.user, OPEN) == ""


def test_containers_have_the_usual_umask(log):
    assert log == "0022"


@pytest.mark.full
def test_nothing_is_open_after_a_whole_life(theirs, images):
    theirs.down("--purge --yes")
    theirs.login.run_as(
        theirs.user, "umask 0; isthmus up --timeout 200; isthmus status; isthmus pull --json " + images["busybox"]
    )
    with namespace(theirs, "private", images, POD) as space:
        lived(space)
        assert theirs.login.run_as(theirs.user, OPEN) == ""
        theirs.login.run_as(theirs.user, "umask 0; isthmus logs kubelet; isthmus doctor; isthmus down")
        assert theirs.login.run_as(theirs.user, OPEN) == ""
        theirs.up()
