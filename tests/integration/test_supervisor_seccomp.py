"""Containers with seccomp profiles, on real Apptainer."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.pods.plans import container, plan

# podman, which makes the node of these tests, needs the package that has it.
DEFAULT = Path("/usr/share/containers/seccomp.json")
SHOW = "grep -E 'Seccomp:|NoNewPrivs' /proc/self/status"
USER = {"uid": 1000, "gid": 1000, "groups": [5]}


@pytest.fixture
def profile(host):
    """Lays a profile where the node sees it; returns its path."""

    def lay(content):
        path = host.shared / "seccomp.json"
        if content is None:
            shutil.copy(DEFAULT, path)
        else:
            path.write_text(json.dumps(content))
        path.chmod(0o644)
        return str(path)

    return lay


def log(pod, name):
    lines = (pod.folder / f"logs/{name}/0.log").read_text().splitlines()
    return [line.split(" ", 3)[3] for line in lines]


@pytest.mark.parametrize("escalates", [True, False])
@pytest.mark.parametrize("user", [None, USER], ids=["root", "user"])
def test_programs_run_under_the_default_profile(pod, profile, user, escalates):
    """Also those of exec, and no other container's."""
    script = f"{SHOW}; echo done; sleep 1000"
    main = container("main", script, user=user, escalates=escalates, seccomp=profile(None))
    kubelet = pod.run(plan(main, container("other", SHOW)))
    kubelet.until("other", state="terminated")
    kubelet.until("main", ready=True)
    kubelet.logs("main", follow=True).wait_for(b"done")
    assert log(pod, "main") == [f"NoNewPrivs:\t{int(not escalates)}", "Seccomp:\t2", "done"]
    assert kubelet.exec("main", "grep", "Seccomp:", "/proc/self/status").finish()[1] == b"Seccomp:\t2\n"
    assert log(pod, "other") == ["NoNewPrivs:\t0", "Seccomp:\t0"]


def test_profile_of_ones_own_is_taken_at_its_word(pod, profile):
    refused = {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}
    path = profile({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refused]})
    limited = container("limited", "mkdir /tmp/x 2>&1", seccomp=path, memory_mib=64)
    pod.run(plan(container("main", "mkdir /tmp/x 2>&1; touch /tmp/y && echo made", seccomp=path), limited)).ended()
    assert log(pod, "main") == ["mkdir: can't create directory '/tmp/x': No space left on device", "made"]
    assert log(pod, "limited") == ["mkdir: can't create directory '/tmp/x': No space left on device"]


def test_container_without_its_profile_does_not_run(pod):
    reported = pod.run(plan(container("main", "true", seccomp="/no/such.json"))).ended()["containers"]["main"]
    assert (reported["reason"], reported["exit_code"]) == ("ContainerCannotRun", 128)
    assert reported["message"] == "cannot load seccomp profile /no/such.json: No such file or directory"
