"""isthmus-jobsd of the site: it asks Slurm for the kubelets that run, and the kubelets ask no more."""

import re

import pytest

from tests.support.clusters.user_clusters import fetch
from tests.support.wait import wait

UNIT = "isthmus-jobsd"
FIGURE = re.compile(r"^(isthmus_\w+)(\{[^}]*\})? (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def figures(controller, settings):
    """What it says of itself: name with labels -> number."""
    if not settings.get("jobs"):
        pytest.skip("the site has no isthmus-jobsd")
    started = controller.output(f"systemctl show --property=ExecStart --value {UNIT}")
    command = fetch("http://127.0.0.1:{}/metrics".format(*re.findall(r"--metrics-port (\d+)", started)))

    def ask():
        return {name + labels: float(value) for name, labels, value in FIGURE.findall(controller.output(command))}

    return ask


@pytest.mark.usefixtures("figures")
def test_it_runs_without_rights(controller):
    shown = controller.output(
        f"systemctl show --property=ActiveState,User,CapabilityBoundingSet,NoNewPrivileges {UNIT}"
    )
    assert set(shown.split()) == {
        "ActiveState=active",
        "User=isthmus-jobs",
        "CapabilityBoundingSet=",
        "NoNewPrivileges=yes",
    }


def test_status_reports_who_is_there_and_what_is_asked(controller, mine, figures):
    def reported():
        return controller.output(f"systemctl show --property=StatusText --value {UNIT}")

    wait(reported, lambda text: "asked a second" in text and not text.startswith("kubelets: 0"), timeout_s=60)
    assert figures()["isthmus_jobsd_kubelets"] >= 1


def own_questions(user_cluster):
    """Questions of the kubelet itself, by its own count."""
    text = user_cluster.kubectl("get --raw /api/v1/nodes/slurm/proxy/metrics")
    return {name: float(value) for name, _, value in FIGURE.findall(text)}.get(
        "isthmus_kubelet_slurm_questions_total", 0.0
    )


def test_kubelet_with_busy_pods_asks_slurm_nothing_itself(mine, images, figures):
    """Pods come and go; the job's states are those that jobsd reported."""
    wait(lambda: figures()["isthmus_jobsd_kubelets"], lambda count: count >= 1, timeout_s=90)
    before = own_questions(mine)
    for number in range(3):
        name = f"fed-{number}"
        mine.kubectl(f"run {name} --image={images['busybox']} --restart=Never -- sleep 3")
        phase = f"get pod {name} -o jsonpath={{.status.phase}}"
        wait(lambda phase=phase: mine.kubectl(phase), lambda found: found == "Succeeded", timeout_s=120)
        mine.kubectl(f"delete pod {name} --wait=true")
    assert own_questions(mine) == before


@pytest.mark.disruptive
def test_pods_live_and_end_while_it_is_away(controller, mine, images, figures):
    try:
        controller.output(f"systemctl stop {UNIT}")
        mine.kubectl(f"run alone --image={images['busybox']} --restart=Never -- sleep 3")
        phase = "get pod alone -o jsonpath={.status.phase}"
        wait(lambda: mine.kubectl(phase), lambda found: found == "Succeeded", timeout_s=120)
    finally:
        controller.output(f"systemctl start {UNIT}")
        mine.kubectl("delete pod alone --ignore-not-found")
    wait(lambda: figures().get("isthmus_jobsd_kubelets", 0), lambda count: count >= 1, timeout_s=120)


def test_settings_name_the_controller(settings, controller):
    if not settings.get("jobs"):
        pytest.skip("the site has no isthmus-jobsd")
    address, port = settings["jobs"]["address"], settings["jobs"]["port"]
    assert f"{address}:{port}" in controller.output("ss --listening --tcp --numeric --no-header")
