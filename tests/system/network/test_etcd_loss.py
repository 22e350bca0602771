"""One of three members of etcd is lost, the one that leads or another: jobs keep starting, and it comes back."""

import pytest

from tests.support.clusters import etcd_members
from tests.support.clusters.etcd_members import status
from tests.support.wait import wait

pytestmark = pytest.mark.disruptive
JOBS = 5
# A client may first try the lost member, and a new leader must be found.
START = "timeout 120 srun --pod-network --nodes=2 --ntasks-per-node=1 --mem=20 ls /sys/class/net"


@pytest.fixture(scope="module")
def members(cluster):
    """Three members."""
    return etcd_members.members(cluster)


@pytest.fixture(params=["leader", "follower"])
def lost(request, members):
    """A member that is gone meanwhile, and a member that is there."""
    leading = leader(members)
    gone = leading if request.param == "leader" else next(node for node in members if node != leading)
    # Stopped as well, or systemd would bring it back.
    gone.output("systemctl kill --signal=KILL isthmus-etcd && systemctl stop isthmus-etcd")
    yield gone
    gone.output("systemctl start isthmus-etcd")
    wait(lambda: healthy(members[0]), lambda count: count == len(members))


def leader(members):
    """Return the member that leads."""
    (found,) = [member for member in members if (shown := status(member))["header"]["member_id"] == shown["leader"]]
    return found


def healthy(member):
    return member.run("isthmus-etcdctl endpoint health --cluster").stdout.count("is healthy")


def test_jobs_start_without_the_member(login, user, two_computes, members, lost):
    for _ in range(JOBS):
        assert login.run_as(user, START).split() == ["eth0", "lo"] * 2
    assert leader([node for node in members if node != lost])


def test_member_that_comes_back_has_everything(login, user, two_computes, members):
    assert login.run_as(user, START).split() == ["eth0", "lo"] * 2
    wait(
        lambda: {status(member)["header"]["revision"] for member in members},
        lambda revisions: len(revisions) == 1,
    )
