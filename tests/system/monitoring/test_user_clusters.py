"""Users' kubelets report counts to the site, unless their users say no."""

import pytest

from tests.support.clusters import monitoring
from tests.support.wait import wait

# A report each minute, a file each half, a look each minute, and Prometheus' own.
LIMIT_S = 240
POD = """apiVersion: v1
kind: Pod
metadata: {name: counted}
spec:
  containers: [{name: main, image: %s, command: [sleep, "600"]}]
"""


def reported(controller, cluster):
    return monitoring.query(controller, f"sum by (phase) (isthmus_user_pods{{user='{cluster.user}'}})")


@pytest.fixture
def pod(mine, images):
    mine.kubectl("apply -f -", POD % images["busybox"])
    yield
    mine.kubectl("delete pod counted --now")


@pytest.mark.usefixtures("pod")
def test_running_pod_is_counted_and_its_start_is_measured(controller, mine):
    wait(lambda: reported(controller, mine).get(("Running",), 0), bool, timeout_s=LIMIT_S)
    stages = monitoring.query(controller, f"isthmus_user_pod_start_seconds_count{{user='{mine.user}'}}")
    assert sum(stages.values()) >= 4


@pytest.fixture
def silent(theirs):
    theirs.down()
    theirs.up("--no-figures")
    yield theirs
    theirs.down()
    theirs.up("--figures")


@pytest.mark.disruptive
@pytest.mark.full
def test_user_who_says_no_is_not_counted(controller, silent):
    """What was reported before is forgotten, and nothing comes: longer than reports take."""
    wait(lambda: reported(controller, silent), lambda found: not found, timeout_s=2 * LIMIT_S)
    words = silent.login.run_as(silent.user, "cat .isthmus/cluster/up.json")
    assert '"figures": false' in words
