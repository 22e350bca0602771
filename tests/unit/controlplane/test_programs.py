"""What the programs and the job are started with."""

import signal
import subprocess
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from isthmus.controlplane import job, programs
from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.data.node_disk import Disk
from isthmus.controlplane.launcher import from_folder, in_container, seen_in_container
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.programs import Site
from isthmus.controlplane.settings import Settings
from isthmus.model.network import Driver

LAYOUT = Layout(Path("/home/alice/.isthmus/cluster"))
PRIVATE = Settings(Path("/opt/image"))
SHARED = Settings(Path("/opt/image"), driver=Driver.NONE)
ADDRESS = IPv4Address("10.64.0.3")


def site(settings=PRIVATE, **changes):
    return Site(settings, Layout(Path("/cluster")), ADDRESS, **changes)


def options(settings=PRIVATE, user_options=None, **changes):
    return job.submission(settings, user_options or UserOptions(), LAYOUT, Path("/opt/python"), **changes).options


def test_apiserver_is_closed_and_encrypts():
    flags = programs.apiserver(site())
    for wanted in (
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--encryption-provider-config=/cluster/encryption.yaml",
        "--enable-aggregator-routing=true",
        "--allow-privileged=true",
    ):
        assert wanted in flags
    assert not [flag for flag in flags if flag.startswith("--audit")]
    assert "--audit-log-path=/cluster/logs/audit.log" in programs.apiserver(site(audit=True))


@pytest.mark.parametrize(
    ("kubernetes", "version"), [("1.36.1", "v1alpha2"), ("1.36.3", "v1alpha2"), ("1.37.2", "v1beta1")]
)
def test_groups_are_on_in_releases_whose_version_of_them_is_known(kubernetes, version):
    asked = site(kubernetes=kubernetes)
    gate = "--feature-gates=GenericWorkload=true"
    assert {gate, f"--runtime-config=scheduling.k8s.io/{version}=true"} <= set(programs.apiserver(asked))
    # Without its controller, deleted groups stay for ever.
    assert gate in programs.controller_manager(asked)


def test_groups_are_off_in_other_releases():
    asked = site(kubernetes="1.38.0")
    flags = programs.apiserver(asked) + programs.controller_manager(asked)
    assert not [flag for flag in flags if "scheduling" in flag or "GenericWorkload" in flag]


@pytest.mark.parametrize(("settings", "bound"), [(PRIVATE, "0.0.0.0"), (SHARED, "10.64.0.3")])  # noqa: S104
def test_apiserver_listens_on_its_address_where_the_host_has_others(settings, bound):
    assert f"--bind-address={bound}" in programs.apiserver(site(settings))


def test_etcd_listens_on_the_loopback_with_certificates_alone():
    flags = programs.etcd(site())
    assert {flag.split("//")[1] for flag in flags if "-urls=" in flag} == {"127.0.0.1:2379", "127.0.0.1:2380"}
    assert {"--client-cert-auth=true", "--peer-client-cert-auth=true"} <= set(flags)
    assert not [flag for flag in flags if "fsync" in flag]


def test_etcd_leaves_an_idle_api_server_alone():
    reported = dict(flag[2:].split("=", 1) for flag in programs.etcd(site()))
    # A message to each of its watches at each end of this time.
    assert reported["watch-progress-notify-interval"] == "10m"


def test_etcd_writes_where_it_is_reported():
    assert "--data-dir=/cluster/etcd" in programs.etcd(site())
    assert "--data-dir=/disk/etcd" in programs.etcd(site(data=Path("/disk/etcd")))


def test_restored_revisions_go_on_far_above():
    words = programs.restore(Path("/cluster/snapshots/x"), Path("/disk/new"))
    assert words[:3] == ["snapshot", "restore", "/cluster/snapshots/x"]
    assert {"--data-dir=/disk/new", "--bump-revision=1000000000", "--mark-compacted"} <= set(words)


def test_memory_shares_leave_room_for_the_kubelet():
    assert sum(programs.MEMORY_SHARES.values()) <= 80
    assert programs.memory_limit("kube-apiserver", 2048) == "860MiB"


def test_dns_forwards_to_the_network_layers_servers():
    assert "forward . 10.64.0.1" in programs.corefile(site(upstreams=("10.64.0.1",)))
    assert "forward" not in programs.corefile(site())
    several = programs.corefile(site(upstreams=("10.64.0.1", "192.0.2.53")))
    # A name that only the first server knows would else be NXDOMAIN now and then.
    assert "forward . 10.64.0.1 192.0.2.53 {\n        policy sequential\n    }\n" in several
    assert "bind 127.0.0.1 10.64.0.3\n" in programs.corefile(site())


def test_name_that_comes_is_known_at_once():
    """Who waits for a pod asks before its name is there."""
    assert "cache 5 {\n        disable denial cluster.local\n    }" in programs.corefile(site())


def test_container_sees_the_clusters_folder_alone():
    argv = in_container(Path("/opt/image"), LAYOUT)("etcd", ["--x"], "100MiB")
    assert argv[-3:] == ["/opt/image", "/usr/local/bin/etcd", "--x"]
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "--bind"] == [f"{LAYOUT.folder}:/cluster"]
    assert {"--containall", "--no-home", "GOMEMLIMIT=100MiB"} <= set(argv)


def test_container_sees_the_disk_where_there_is_one():
    disk = Disk(Path("/var/tmp/isthmus-1-a"))
    assert f"{disk.folder}:/disk" in in_container(Path("/opt/image"), LAYOUT, disk)("etcd", [], "9MiB")
    see = seen_in_container(LAYOUT, disk)
    assert (see(disk.etcd), see(LAYOUT.snapshots)) == (Path("/disk/etcd"), Path("/cluster/snapshots"))


def test_program_of_a_folder_is_started_as_it_is():
    assert from_folder(Path("/p"))("etcd", ["--x"], "9MiB") == ["env", "GOMEMLIMIT=9MiB", "/p/etcd", "--x"]


def test_job_has_the_sites_size_and_the_users_requests():
    usual = {"--mem=2048M", "--cpus-per-task=1", "--requeue", "--pod-network=private", f"--chdir={LAYOUT.folder}"}
    assert usual <= set(options())
    # So long before the end of its time a successor is submitted.
    assert "--signal=B:USR1@600" in options()
    asked = options(
        user_options=UserOptions(partition="long", account="a", qos="q", time="7-0", memory_mib=4096), after="12"
    )
    wanted = {"--partition=long", "--account=a", "--qos=q", "--time=7-0", "--mem=4096M", "--dependency=afterany:12"}
    assert wanted <= set(asked)


def test_job_without_a_network_asks_for_none():
    assert not [option for option in options(SHARED) if "network" in option]
    assert job.environment(SHARED) == {}
    assert job.environment(PRIVATE) == {"ISTHMUS_RESERVATION": "kubernetes"}


def listener(**acts):
    """Return a program that does something on signals."""
    heard = "; ".join(f"signal.signal(signal.{word}, lambda *_: {act})" for word, act in acts.items())
    # Not pause(2): a signal just before it would be heard with the next one.
    forever = "print('ready', flush=True); [time.sleep(0.05) for _ in iter(int, 1)]"
    return f'exec python3 -c "import os, signal, time; {heard}; {forever}"'


END = "(print('heard', flush=True), os._exit(3))"


@pytest.fixture
def script(tmp_path):
    """Run the job's script with another program in Python's place."""

    def run(program, *words, at=None, then=None):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/bash\n{program}\n")
        python.chmod(0o755)
        text = job.submission(PRIVATE, UserOptions(), LAYOUT, python).script.replace("sleep 1\n", ":\n")
        if at:
            assert text.count(at) == 1
            text = text.replace(at, then)
        begun = subprocess.Popen(["bash", "-c", text], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        try:
            for word in words:
                assert begun.stdout.readline() == "ready\n"
                begun.send_signal(signal.Signals[word])
            reported, _ = begun.communicate(timeout=60)
        finally:
            begun.kill()
        return begun.returncode, reported.split()

    return run


@pytest.mark.parametrize("word", ["SIGTERM", "SIGUSR1"])
def test_script_passes_signals_on_and_waits_for_the_end(script, word):
    assert script(listener(**{word: END}), word) == (3, ["heard"])


@pytest.mark.parametrize("then", ["{}; child=$!", "child=$!; {}"])
def test_time_limit_heard_as_the_child_begins_reaches_it(script, then):
    now = then.format("kill -USR1 $$")
    # It comes early here too, and must not end a child that does not listen yet.
    program = f"kill -USR1 $$; {listener(SIGUSR1=END)}"
    assert script(program, at="child=$!", then=now) == (3, ["ready", "heard"])


@pytest.mark.parametrize("then", ["{}; child=$!", "child=$!; {}"])
def test_end_heard_as_the_child_begins_ends_it(script, then):
    status, _ = script(listener(SIGTERM=END), at="child=$!", then=then.format("kill -TERM $$"))
    # A child that did not listen yet has nothing to put in order.
    assert status in (3, 128 + signal.SIGTERM)


def test_end_heard_after_the_time_limit_is_passed_on_too(script):
    once = "(signal.signal(signal.SIGUSR1, signal.SIG_IGN), print('ready', flush=True))"
    assert script(listener(SIGUSR1=once, SIGTERM=END), "SIGUSR1", "SIGTERM") == (3, ["heard"])


def test_script_begins_again_after_a_kill_alone(script):
    again = "echo ran; [ -e second ] && exit 4; touch second; kill -KILL $$"
    assert script(again) == (4, ["ran", "ran"])


def test_script_that_shall_end_does_not_begin_again_after_a_kill(script):
    killed = listener(SIGTERM="os.kill(os.getpid(), signal.SIGKILL)")
    assert script(killed, "SIGTERM") == (137, [])
