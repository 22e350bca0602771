"""What a container sees of itself and of its pod."""

from base64 import b64encode
from pathlib import Path

from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import action, container, mount, plan, volume
from tests.support.servers.apptainer_host import UID
from tests.support.wait import wait


def log(pod, name="main"):
    lines = (pod.folder / f"logs/{name}/0.log").read_text().splitlines()
    return [line.split(" ", 3)[3] for line in lines]


def test_variables_are_exact_and_on_no_command_line(pod):
    hidden = 'it\'s "quoted" $HOME `x`\nsecond line'
    reported = [
        {"name": "SECRET", "value": hidden.replace("$", "$$")},
        {"name": "odd.name-x", "value": "odd"},
        {"name": "IP", "fact": "pod_ip"},
        {"name": "URL", "value": "http://$(IP)/$$(IP)/$(NONE)"},
    ]
    main = container(
        "main", "", argv=["sh", "-c", 'env; echo "$SECRET"; echo "$1 $2"; sleep 1000', "sh", "$(IP)", "$$(IP)"]
    )
    kubelet = pod.run(plan({**main, "env": reported}))
    wait_for_log(kubelet, "main", b"127.0.0.1 $(IP)\n")
    shown = log(pod)
    assert "second line" in shown
    assert b"odd.name-x=odd\n" in kubelet.exec("main", "env").finish()[1]
    assert {"IP=127.0.0.1", "URL=http://127.0.0.1/$(IP)/$(NONE)", "HOSTNAME=web-0"} <= set(shown)
    assert not [line for line in shown if line.startswith(("APPTAINER", "SINGULARITY", "SLURM"))]
    assert not {*pod.processes(b"second line")} & {*pod.processes()}


def test_hosts_resolver_and_host_name(pod):
    hosts = [{"address": "10.1.2.3", "names": ["db", "db.local"]}]
    pod.run(
        plan(container("main", "hostname; cat /etc/hosts /etc/resolv.conf"), hosts=hosts, fqdn="web-0.web.svc")
    ).ended()
    shown = log(pod)
    assert shown[:2] == ["web-0", "# Kubernetes-managed hosts file."]
    assert {"127.0.0.1\tweb-0.web.svc\tweb-0", "10.1.2.3\tdb\tdb.local", "nameserver 10.96.0.10"} <= set(shown)
    assert {"search default.svc.cluster.local", "options ndots:5"} <= set(shown)


def test_hosts_of_a_pod_without_network_of_its_own(pod):
    pod.run(plan(container("main", "cat /etc/hosts"), host_network=True)).ended()
    shown = log(pod)
    assert shown[0] == "# Kubernetes-managed hosts file (host network)."
    assert "127.0.0.1\tweb-0" not in shown


def test_volume_lies_over_hosts_and_resolver(pod):
    lines = [{"path": name, "data": b64encode(b"mine\n").decode(), "mode": 0o644} for name in ("hosts", "resolv")]
    mounts = [mount("data", "/etc/hosts", sub_path="hosts"), mount("data", "/etc/resolv.conf", sub_path="resolv")]
    main = container("main", "cat /etc/hosts /etc/resolv.conf", mounts=mounts)
    pod.run(plan(main, volumes=[volume("data", "files", files=lines)])).ended()
    assert log(pod) == ["mine", "mine"]


def test_no_new_privileges_where_the_pod_says_so(pod):
    script = "grep NoNewPrivs /proc/self/status"
    pod.run(plan(container("one", script), container("two", script, escalates=False))).ended()
    assert (log(pod, "one"), log(pod, "two")) == (["NoNewPrivs:\t0"], ["NoNewPrivs:\t1"])


def test_runs_as_root_of_its_own_ids_by_default(pod):
    script = "id -u; id -g; touch /x; chown 5:6 /x && stat -c %u:%g /x; grep CapEff /proc/self/status; pwd"
    pod.run(plan(container("main", script))).ended()
    assert log(pod) == ["0", "0", "5:6", "CapEff:\t00000000a80425fb", "/"]


def test_runs_as_a_user_with_groups(pod):
    user = {"uid": 1234, "gid": 2345, "groups": [3456]}
    script = "id -u; id -g; id -G; grep CapEff /proc/self/status; touch /x 2>&1; pwd; echo $HOME"
    pod.run(plan(container("main", script, user=user, cwd="/srv/app"))).ended()
    none = "CapEff:\t0000000000000000"
    assert log(pod) == ["1234", "2345", "2345 3456", none, "touch: /x: Permission denied", "/srv/app", "/"]


def test_capabilities_are_added_and_dropped(pod):
    changes = {"add": ["SYS_TIME"], "drop": ["ALL"]}
    pod.run(plan(container("main", "grep -E 'Cap(Eff|Bnd)' /proc/self/status", capabilities=changes))).ended()
    assert log(pod) == ["CapEff:\t0000000002000000", "CapBnd:\t0000000002000000"]


def test_all_capabilities_are_those_of_the_pods_own_user_namespace(pod):
    """What a privileged container has: mounts of its own, and of the node no device, no setting, no network."""
    own = "grep -E 'Cap(Eff|Bnd)' /proc/self/status; mkdir /m; mount -t tmpfs none /m && touch /m/x && echo mounted"
    node = "mknod /disk b 8 0 2>&1; echo 1 2>&1 >/proc/sys/kernel/panic; ip link add d type dummy 2>&1"
    pod.run(plan(container("main", f"{own}; {node}", capabilities={"add": ["ALL"], "drop": []}))).ended()
    kernel = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    mask = f"{(1 << min(kernel + 1, 41)) - 1:016x}"
    shown = log(pod)
    assert shown[:3] == [f"CapEff:\t{mask}", f"CapBnd:\t{mask}", "mounted"]
    assert len(shown) == 6
    refused = ("Operation not permitted", "Permission denied", "Read-only file system")
    assert not [line for line in shown[3:] if not line.endswith(refused)]


def test_user_without_subordinate_ids_gets_root_alone(supervised):
    pod = supervised("bob")
    user = {"uid": 1234, "gid": 1234, "groups": []}
    report = pod.run(plan(container("main", "id -u; touch /x"), container("other", "id -u", user=user))).ended()
    assert log(pod) == ["0"]
    reported = report["containers"]["other"]
    assert reported["reason"] == "StartError"
    assert "/etc/subuid" in reported["message"]


def test_root_that_may_not_be_written(pod):
    pod.run(plan(container("main", "touch /x 2>&1; touch /dev/shm/y && echo shm", read_only=True))).ended()
    assert log(pod) == ["touch: /x: Read-only file system", "shm"]


def test_each_start_has_a_fresh_root(pod):
    kubelet = pod.run(plan(container("main", "ls /x 2>&1; touch /x; exit 1"), restart_policy="OnFailure"))
    kubelet.until("main", reason="CrashLoopBackOff")
    for restart in (0, 1):
        assert "No such file" in (pod.folder / f"logs/main/{restart}.log").read_text()


def test_containers_share_memory_and_ipc_but_not_processes(pod):
    one = container("one", "touch /dev/shm/one; readlink /proc/self/ns/ipc; sleep 1111")
    two = container("two", "until test -e /dev/shm/one; do sleep 0.1; done; readlink /proc/self/ns/ipc; sleep 2222")
    kubelet = pod.run(plan(one, two))
    for name in ("one", "two"):
        wait_for_log(kubelet, name, b"ipc:")
    assert log(pod, "one")[0] == log(pod, "two")[0]
    seen = kubelet.exec("two", "ps").finish()[1]
    assert b"sleep 2222" in seen
    assert b"sleep 1111" not in seen


def test_containers_may_share_processes(pod):
    kubelet = pod.run(plan(container("one", "sleep 1111"), container("two", "sleep 2222"), share_pid=True))
    for name in ("one", "two"):
        kubelet.until(name, ready=True)
    found = kubelet.exec("two", "ps", "-o", "pid,comm,args").finish()[1]
    assert b"sleep 1111" in found
    assert b"    1 pause" in found


def test_ephemeral_container_sees_the_processes_of_its_target(pod):
    kubelet = pod.run(plan(container("one", "touch /mark; sleep 1111"), container("two", "sleep 2222")))
    for name in ("one", "two"):
        kubelet.until(name, ready=True)
    debug = container("debug", "sleep 3333", image=str(pod.host.image))
    kubelet.send({"type": "ephemeral", "container": debug, "target": "one"})
    kubelet.until("debug", state="running")

    def listed():
        seen = kubelet.exec("debug", "ps", "-o", "pid,args").finish()[1].decode()
        return {words[1:]: words[0] for words in (tuple(line.split()) for line in seen.splitlines())}

    # A container is running as soon as its process is there, before its shell has come to the program.
    pids = wait(listed, lambda found: ("sleep", "3333") in found)
    assert ("sleep", "2222") not in pids
    target = pids["sleep", "1111"]
    assert kubelet.exec("debug", "ls", f"/proc/{target}/root/mark", "/mark").finish()[:2] == (
        1,
        f"/proc/{target}/root/mark\n".encode(),
    )
    # Its own signal may reach it before it has ended.
    assert kubelet.exec("debug", "kill", target).finish()[0] in (0, 137)
    assert kubelet.until("one", state="terminated")["exit_code"] == 143
    # Its processes are the target's, and end with it, as elsewhere.
    assert kubelet.until("debug", state="terminated")["exit_code"] == 137
    assert kubelet.until("two", state="running")["restarts"] == 0


def test_ephemeral_container_whose_target_does_not_run(pod):
    kubelet = pod.run(plan(container("one", "exit 0"), container("two", "sleep 2222")))
    kubelet.until("one", state="terminated")
    debug = container("debug", "sleep 3333", image=str(pod.host.image))
    kubelet.send({"type": "ephemeral", "container": debug, "target": "one"})
    reported = kubelet.until("debug", state="terminated")
    assert (reported["reason"], reported["message"]) == (
        "ContainerCannotRun",
        "unable to find target container one: it does not run",
    )


def test_hook_after_the_start_runs_in_the_container(pod):
    hook = action("exec", argv=["sh", "-c", "echo hooked >/hook"])
    pod.run(plan(container("main", "until [ -s /hook ]; do sleep 0.05; done; cat /hook", post_start=hook))).ended()
    assert log(pod) == ["hooked"]


def test_hook_that_fails_ends_the_container(pod):
    hook = action("exec", argv=["sh", "-c", "echo broken; exit 3"])
    reported = pod.run(plan(container("main", "sleep 1000", post_start=hook))).ended()["containers"]["main"]
    assert (reported["reason"], reported["exit_code"]) == ("PostStartHookError", 143)
    assert reported["message"] == "postStart hook: exit code 3: broken"


def test_files_on_the_shared_home_are_the_users_and_private(pod):
    pod.run(plan(container("main", "echo x"))).ended()
    for path in (pod.folder / "report.json", pod.folder / "logs/main/0.log"):
        assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (UID, 0o600)
