"""The connection to the kubelet: lost, moved, refused; the pod does not notice."""

import json
import time

from isthmus.kubelet.pods.decision.state import Pauses
from tests.support.fakes.kubelet import Kubelet, wait_for_log
from tests.support.files import certificates
from tests.support.pods.plans import container, plan
from tests.support.wait import wait


def be_away(kubelet, time_s):
    kubelet.leave()
    time.sleep(time_s)
    kubelet.listen()


def test_says_who_it_is(pod):
    kubelet = pod.run(plan(container("main", "exit 0")))
    kubelet.ended()
    assert kubelet.hellos[0] == {
        **{"type": "hello", "version": 1, "versions": [1], "features": ["windows"], "uid": pod.folder.name},
        **{"job": "77", "node": "c1"},
        **{"addresses": ["127.0.0.1"], "host_address": "127.0.0.1", "has_plan": False},
    }
    # The file follows what was said, and is whole when the job ends.
    assert pod.exit_status() == 0
    reported = json.loads((pod.folder / "report.json").read_text())
    assert {**reported, "type": "report"} == kubelet.report


def test_pod_goes_on_without_the_kubelet_which_moves(pod):
    kubelet = pod.run(plan(container("main", "echo up; sleep 8; exit 4")))
    wait_for_log(kubelet, "main", b"up")
    be_away(kubelet, 1)
    kubelet.wait(lambda: len(kubelet.hellos) == 2)
    assert kubelet.hellos[1]["has_plan"]
    assert kubelet.ended()["containers"]["main"]["exit_code"] == 4
    assert kubelet.report["containers"]["main"]["restarts"] == 0


def test_kubelet_that_was_away_for_long_is_found_before_it_gives_up(pod):
    kubelet = pod.run(plan(container("main", "echo up; sleep 1000")))
    wait_for_log(kubelet, "main", b"up")
    # By then it is tried as rarely as ever.
    be_away(kubelet, 6.5)
    kubelet.wait(lambda: len(kubelet.hellos) == 2, timeout_s=Pauses().connect)


def test_pod_ends_without_the_kubelet_and_leaves_its_report(pod):
    kubelet = pod.run(plan(container("main", "echo up; sleep 1; exit 4")))
    wait_for_log(kubelet, "main", b"up")
    kubelet.leave()
    assert pod.exit_status() == 1
    report = json.loads((pod.folder / "report.json").read_text())
    assert (report["phase"], report["containers"]["main"]["exit_code"]) == ("ended", 4)


def test_second_plan_changes_nothing(pod):
    kubelet = pod.run(plan(container("main", "echo up; sleep 8")))
    wait_for_log(kubelet, "main", b"up")
    kubelet.start(plan(container("other", "exit 0", image="none")))
    assert set(kubelet.ended()["containers"]) == {"main"}


def test_kubelet_of_another_ca_is_not_trusted(pod, tmp_path):
    certificates.write_channel(tmp_path / "false", "u")
    false = Kubelet(tmp_path / "false", pod.folder)
    pod.launch()
    wait((pod.folder / "slurm.log").read_text, lambda reported: "certificate verify failed" in reported)
    assert not false.hellos
    false.leave()


def test_stop_before_the_plan_ends_it(pod):
    pod.launch()
    pod.kubelet.wait(lambda: pod.kubelet.hellos)
    pod.kubelet.send({"type": "stop", "grace_s": 5})
    assert pod.kubelet.ended()["containers"] == {}
    assert pod.exit_status() == 1


def test_words_it_does_not_know_are_left_alone(pod):
    kubelet = pod.run(plan(container("main", "echo up; until test -e /on; do sleep 0.1; done")))
    wait_for_log(kubelet, "main", b"up")
    kubelet.send({"type": "sing"})
    assert kubelet.open("exec").refusal() == "exec: 'container'"
    kubelet.send({"type": "update", "volumes": [{"name": 1}]})
    kubelet.exec("main", "touch", "/on").finish()
    assert pod.exit_status() == 0
