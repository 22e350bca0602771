from itertools import pairwise

import pytest

from tests.support.clusters import jobs

SUBIDS = 65536


def test_every_host_has_the_same_apptainer(nodes):
    assert len({node.output("apptainer --version") for node in nodes.values()}) == 1


def test_nothing_of_apptainer_is_setuid_unasked(nodes, controller):
    starters = ["starter-suid"] if controller.variables["apptainer_setuid"] else []
    for node in nodes.values():
        files = node.output("dpkg --listfiles apptainer | xargs -d '\\n' stat --format '%A %F %n' 2>/dev/null || true")
        setuid = [line for line in files.splitlines() if "s" in line.split()[0] and "regular" in line]
        assert [line.rsplit("/", 1)[1] for line in setuid] == starters


def test_sid_offers_nothing_else(nodes):
    for node in nodes.values():
        assert "sid" not in node.output("apt-get --simulate dist-upgrade | grep ^Inst || true")


@pytest.mark.parametrize("file", ["/etc/subuid", "/etc/subgid"])
def test_users_have_ids_of_their_own_the_same_everywhere(nodes, cluster, file):
    for node in nodes.values():
        ranges = [line.split(":") for line in node.output(f"cat {file}").splitlines()]
        assert {name for name, _, count in ranges if int(count) >= SUBIDS} >= set(cluster.users)
        spans = sorted((int(start), int(start) + int(count)) for _, start, count in ranges)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    wanted = f"grep -E '^({'|'.join(cluster.users)}):' {file} | sort"
    assert len({node.output(wanted) for node in nodes.values()}) == 1


def test_job_keeps_images_where_its_user_does(login, controller, user):
    shown = "echo cache=$APPTAINER_CACHEDIR tmp=$APPTAINER_TMPDIR"
    job = jobs.submit(login, user, "--export=NONE", shown)
    jobs.wait_for_job(controller, job, "COMPLETED")
    assert jobs.output(login, user, job) == login.run_as(user, shown)
    login.run_as(user, f"rm -f .isthmus-test-{job}.out")
