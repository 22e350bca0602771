"""The box of tests/site/test_openstack*.py, made from nothing, and these tests on it."""

import sys

from tests.support.clusters import playbooks
from tests.support.servers import openstack as box


def test_provider_on_a_box_made_from_nothing():
    box.main("forget")
    tests = playbooks.run("openstack_box", sys.executable, "-m", "tests.support.servers.openstack", "up")
    assert tests.rc == 0
    files = ("tests/site/test_openstack.py", "tests/site/test_openstack_refusals.py")
    done = playbooks.run(
        "openstack_site", sys.executable, "-m", "pytest", "-ra", "-n", "2", "--dist", "loadfile", *files
    )
    assert done.rc == 0
    assert "skipped" not in done.output
