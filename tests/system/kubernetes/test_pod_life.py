"""A pod from its init containers to its last words, live: order, probes, hooks, messages, limits."""

from tests.support.wait import wait


def terminated(space, pod, name, kind="containerStatuses"):
    return space.container(pod, name, kind)["state"]["terminated"]


def test_init_container_and_sidecar_come_first(space):
    assert space.ended("ordered")["phase"] == "Succeeded"
    assert space.kubectl("logs ordered --container last").split() == ["first", "side"]


def test_sidecar_ends_with_the_pod(space):
    space.ended("ordered")
    assert terminated(space, "ordered", "side", "initContainerStatuses")["exitCode"] != 0
    assert terminated(space, "ordered", "first", "initContainerStatuses")["reason"] == "Completed"


def test_container_with_good_probes_is_ready(space):
    reported = wait(lambda: space.container("probed", "well"), lambda reported: reported.get("ready"))
    assert (reported["started"], reported["restartCount"]) == (True, 0)


def test_container_with_a_bad_readiness_probe_runs_unready(space):
    wait(lambda: space.container("probed", "well"), lambda reported: reported.get("ready"))
    reported = space.container("probed", "unready")
    assert "running" in reported["state"]
    assert (reported["started"], reported["ready"], reported["restartCount"]) == (True, False, 0)


def test_containers_with_bad_liveness_or_startup_probes_are_restarted(space):
    for name in ("sick", "mute"):
        reported = wait(
            lambda name=name: space.container("probed", name), lambda reported: reported.get("restartCount", 0) > 0
        )
        assert (
            reported["lastState"]["terminated"]["exitCode"] == 143
            or reported["lastState"]["terminated"]["exitCode"] == 137
        )


def test_hooks_run_around_the_container(space):
    space.ready("pod/hooked pod/listener")
    read = "exec listener -- cat /reported/text"
    wait(lambda: space.kubectl(read), lambda text: text == "postStart")
    space.kubectl("delete pod hooked --timeout=120s")
    assert space.kubectl(read).split() == ["postStart", "preStop", "SIGTERM"]


def test_termination_message_comes_from_its_file_or_the_log(space):
    assert space.ended("last-words")["phase"] == "Failed"
    by_file, by_log = (terminated(space, "last-words", name) for name in ("file", "log"))
    assert (by_file["exitCode"], by_file["message"]) == (3, "over and out\n")
    assert (by_log["exitCode"], by_log["message"]) == (4, "nothing left to say")


def test_memory_limit_kills_its_container_alone(space):
    assert space.ended("greedy")["phase"] == "Failed"
    reported = terminated(space, "greedy", "greedy")
    # Its shell lived on, and ended by itself.
    assert (reported["reason"], reported["exitCode"]) == ("OOMKilled", 5)
    assert terminated(space, "greedy", "modest")["reason"] == "Completed"


def test_exec_counts_into_the_memory_of_its_container(space):
    space.ready("pod/entered")
    hog = "exec entered --container {} -- dd if=/dev/zero of=/dev/null bs=300M count=1"
    assert space.try_kubectl(hog.format("small")).rc == 137
    space.kubectl(hog.format("large"))
    assert all(space.container("entered", name)["restartCount"] == 0 for name in ("small", "large"))


def test_deadline_ends_the_pod(space):
    reported = space.ended("late")
    assert (reported["phase"], reported["reason"]) == ("Failed", "DeadlineExceeded")


def test_number_has_the_group_and_home_that_the_image_gives_it(space):
    assert space.ended("identity")["phase"] == "Succeeded"
    assert space.kubectl("logs identity").split() == ["33", "33", "33", "4000", "/var/www"]
