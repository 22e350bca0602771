"""A pod's containers begin, end and begin again, on real Apptainer."""

from tests.support.supervised import container, plan


def test_pod_that_succeeds(pod):
    kubelet = pod.run(plan(container("main", "echo well; exit 0")))
    report = kubelet.ended()
    assert report["containers"]["main"]["state"] == "terminated"
    assert (report["containers"]["main"]["reason"], report["containers"]["main"]["exit_code"]) == ("Completed", 0)
    assert pod.exit_status() == 0
