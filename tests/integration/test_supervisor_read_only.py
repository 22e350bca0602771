"""A home that takes no more files while a pod runs: the pod goes on, and the kubelet hears how it ends."""

from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import container, plan


def test_pod_goes_on_when_its_folder_turns_read_only(pod):
    script = "echo begun; while [ ! -e /shared/go ]; do sleep 0.1; done; echo ended; exit 3"
    shared = {
        "name": "shared",
        "kind": "host",
        "size_bytes": None,
        "path": str(pod.folder.parent),
        "host_type": "",
        "files": [],
    }
    at = {"volume": "shared", "path": "/shared", "sub_path": None, "read_only": False}
    asked = plan(container("main", script, mounts=[at]), volumes=[{**shared, "gid": None}])
    kubelet = pod.run(asked)
    wait_for_log(kubelet, "main", b"begun")
    # As EROFS does it: what is open stays so, nothing new can be made or renamed.
    pod.host.run("chown", "-R", "root:", pod.folder)
    pod.host.run("touch", pod.folder.parent / "go")
    report = kubelet.ended()
    assert (report["containers"]["main"]["exit_code"], pod.exit_status()) == (3, 1)
    said = (pod.folder / "slurm.log").read_text()
    assert "report.json cannot be written: Permission denied; the pod continues, check the home" in said
    assert "Traceback" not in said
