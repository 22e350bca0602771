"""What the ranks of an MPI container have of their pod, on real Apptainer."""

import json

from isthmus.supervisor.runtime.rank_container import HELD
from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import container, mount, plan, volume
from tests.support.servers.apptainer_host import UID


def lines(pod, name="main", stream="stdout"):
    """Return what a container has written."""
    found = (pod.folder / f"logs/{name}/0.log").read_text().splitlines()
    return [line.split(" ", 3)[3] for line in found if f" {stream} " in line]


def said(pod, script, *volumes, **rest):
    """Return what a rank writes."""
    pod.run(plan(container("main", script, mpi=True, mpi_flags=["--mpi=pmix"], **rest), volumes=[*volumes])).ended()
    return lines(pod)


def test_ranks_see_volumes_that_are_images(pod):
    image = volume("image", "image", path=str(pod.host.image))
    mounts = [mount("image", "/image"), mount("image", "/part", sub_path="etc")]
    script = "head -n 1 /image/etc/passwd; ls /part; touch /image/x 2>&1"
    reported = ["root:x:0:0:root:/root:/bin/sh", "group", "hosts", "passwd", "resolv.conf"]
    assert said(pod, script, image, mounts=mounts) == [*reported, "touch: /image/x: Read-only file system"]


LOOK = "ls ~/mine 2>&1; touch /x 2>&1; pwd; grep -E 'CapPrm|CapBnd|NoNew' /proc/self/status; ls -d /scratch 2>&1"


def test_ranks_see_what_the_pod_mounts(pod):
    pod.host.run("touch", "/home/alice/mine", user="alice")
    home, *rest = said(pod, LOOK)
    assert home.endswith("No such file or directory")
    assert rest == [
        "touch: /x: Read-only file system",
        "/",
        *("CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"),
        "ls: /scratch: No such file or directory",
    ]


def test_ranks_have_the_home_where_the_pod_says_so(pod):
    pod.host.run("touch", "/home/alice/mine", user="alice")
    assert said(pod, "ls ~/mine; ls -d /scratch 2>&1", mpi_home=True) == [
        "/home/alice/mine",
        "ls: /scratch: No such file or directory",
    ]


def test_ranks_of_a_node_meet_in_shared_memory_and_in_the_folder_of_pmix(pod):
    folder = "/tmp/spmix_appdir_1000_77.0"
    pod.host.run("mkdir", "-p", folder, user="alice")
    for place in (folder, "/dev/shm"):
        pod.host.run("touch", f"{place}/isthmus-test", user="alice")
    seen = [f"{folder}/isthmus-test", "/dev/shm/isthmus-test"]
    assert said(pod, f"for f in {' '.join(seen)}; do rm $f && echo $f; done") == seen
    pod.host.run("rmdir", folder)


def test_ranks_get_no_part_of_a_folder_that_others_may_change(pod):
    (pod.folder / "place/part").mkdir(parents=True)
    place = volume("place", "host", path=str(pod.folder / "place"))
    main = container("main", "true", mpi=True, mounts=[mount("place", "/v", sub_path="part")])
    reported = pod.run(plan(main, volumes=[place])).ended()["containers"]["main"]
    assert reported["reason"] == "StartError"
    assert reported["message"].startswith("subPath part of volume place is not offered with several tasks; ")


def test_ranks_have_a_place_for_what_is_temporary(pod):
    assert said(pod, "touch /tmp/x && ls /tmp/x; ls -A /var/tmp") == ["/tmp/x"]


SHARED = [mount("box", "/box"), mount("box", "/part", sub_path="a/b"), mount("keys", "/keys")]


def boxes():
    data = {"path": "key", "mode": 0o640, "data": "c2VjcmV0"}
    return [volume("box", "dir"), volume("keys", "files", files=[data]), volume("memory", "memory")]


def test_ranks_of_the_first_node_see_the_pods_own_volumes(pod):
    """As the user himself all the same."""
    script = "cat /keys/key; echo; touch /keys/x 2>&1; echo new >/box/rank; echo part >/part/rank; id -u; id -g"
    look = "until [ -e /box/a/b/rank ]; do sleep 0.1; done; cat /box/rank /part/rank; stat -c %u /box/rank"
    main = container("main", script, mpi=True, mounts=SHARED)
    pod.run(plan(main, container("side", look, mounts=SHARED), volumes=boxes())).ended()
    assert lines(pod) == ["secret", "touch: /keys/x: Read-only file system", "1000", "1000"]
    # Root of the pod is the user.
    assert lines(pod, "side") == ["new", "part", "0"]


def several(pod, script, *flags, volumes=(), **rest):
    """Run ranks; return the report of their container, and what they wrote."""
    main = container("main", script, mpi=True, mpi_flags=["--mpi=pmix", *flags], **rest)
    reported = pod.run(plan(main, volumes=[*volumes])).ended()["containers"]["main"]
    return reported, lines(pod)


def left(pod):
    """Return the user's processes that keep containers of ranks; a test bed on this machine has others'."""
    shown = [line.split(maxsplit=1) for line in pod.host.run("ps", "-eo", "uid,args").splitlines()]
    return [args for uid, args in shown if uid == str(UID) and args.startswith(HELD)]


def test_ranks_of_a_node_share_a_container(pod):
    """Each may read the memory of the others, and has its own variables."""
    script = f"""
        echo $$$$ >/box/new$SLURM_PROCID; mv /box/new$SLURM_PROCID /box/$SLURM_PROCID
        until [ -e /box/0 ] && [ -e /box/1 ]; do sleep 0.05; done
        other=$(cat /box/$((1 - SLURM_PROCID)))
        tr '\\0' '\\n' </proc/$other/environ | grep SLURM_PROCID
        echo of $SLURM_PROCID $(readlink /proc/self/ns/user) $(readlink /proc/self/ns/mnt) $(id -u) $(pwd) $WORD
        {LOOK}
        touch /box/done$SLURM_PROCID; until [ -e /box/done0 ] && [ -e /box/done1 ]; do sleep 0.05; done
    """
    env = [{"name": "WORD", "value": "w"}]
    reported, found = several(pod, script, "--ntasks=2", volumes=boxes(), mounts=SHARED, env=env, cwd="/tmp")
    assert reported["exit_code"] == 0, found
    own = sorted(line.split()[1:] for line in found if line.startswith("of "))
    assert [row[0] for row in own] == ["0", "1"]
    assert own[0][1:] == own[1][1:]
    assert own[0][3:] == ["1000", "/tmp", "w"]
    assert sorted(line for line in found if line.startswith("SLURM_PROCID")) == ["SLURM_PROCID=0", "SLURM_PROCID=1"]
    for line in ("CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"):
        assert found.count(line) == 2
    assert found.count("touch: /x: Read-only file system") == 2
    assert not left(pod)


def test_ranks_of_other_nodes_share_one_of_their_own(pod):
    script = "ls /box /etc/passwd 2>&1; echo of $SLURM_PROCID $(readlink /proc/self/ns/mnt) $(id -u); sleep 1"
    mounts = [mount("box", "/box")]
    reported, found = several(pod, script, "--nodes=2", "--ntasks=4", volumes=boxes(), mounts=mounts)
    assert reported["exit_code"] == 0, found
    own = {int(line.split()[1]): line.split()[2:] for line in found if line.startswith("of ")}
    assert (own[0], own[2]) == (own[1], own[3])
    assert own[0] != own[2]
    assert own[2][1] == "1000"
    assert found.count("ls: /box: No such file or directory") == 2
    assert not left(pod)


def test_ranks_of_other_nodes_see_paths_of_the_host(pod):
    """By which the host's own MPI comes into a container, and data of the home."""
    place = pod.folder / "place"
    place.mkdir()
    (place / "file").write_text("the host's\n")
    mounts = [mount("place", "/place", read_only=True)]
    kinds = [volume("place", "host", path=str(place))]
    script = "cat /place/file; touch /place/x 2>&1"
    reported, found = several(pod, script, "--nodes=2", "--ntasks=4", volumes=kinds, mounts=mounts)
    assert found.count("the host's") == 4, reported
    assert found.count("touch: /place/x: Read-only file system") == 4


def test_rank_that_fails_among_others(pod):
    reported, _ = several(pod, "[ $SLURM_PROCID = 0 ] || exit 3", "--ntasks=2")
    assert (reported["exit_code"], reported["reason"]) == (3, "Error")
    assert not left(pod)


def test_program_of_several_ranks_that_is_not_there(pod):
    main = container("main", "", mpi=True, mpi_flags=["--mpi=pmix", "--ntasks=2"])
    reported = pod.run(plan({**main, "argv": ["no-such-program"]})).ended()["containers"]["main"]
    assert reported["exit_code"] == 255
    assert sum("no-such-program" in line for line in lines(pod, stream="stderr")) >= 2


def test_container_that_cannot_be_opened_is_said_to_every_rank(pod):
    held = ["apptainer", "--quiet", "exec", "/no/such.squashfs", HELD]
    document = json.dumps({"argv": ["true"], "held": held, "program": ["true"], "folder": ""})
    command = "SLURM_STEP_TASKS_PER_NODE=2 python3 -I -m isthmus.supervisor.runtime.rank '' \"$0\" 2>&1"
    script = f"a() {{ {command}; echo $?; }}; a & a & wait"
    said = pod.host.run("sh", "-c", script, document, user="alice").splitlines()
    assert said.count("1") == 2
    reasons = [line for line in said if line.startswith("the rank cannot join its pod: ")]
    assert len(reasons) == 2
    assert all("/no/such.squashfs" in line for line in reasons)


def test_signal_reaches_every_rank(pod):
    script = "trap 'echo ending; exit 9' TERM; echo be'gun'; while :; do sleep 0.1; done"
    main = container("main", script, mpi=True, mpi_flags=["--mpi=pmix", "--ntasks=2"])
    kubelet = pod.run(plan(main))
    wait_for_log(kubelet, "main", b"begun\nbegun\n")
    assert left(pod)
    kubelet.send({"type": "stop", "grace_s": 20})
    assert kubelet.ended()["containers"]["main"]["exit_code"] == 9
    assert lines(pod).count("ending") == 2
    assert not left(pod)


WRAP = """\
#!/bin/sh
# As argoexec: runs what stands after `--`, hands on signals, keeps the exit code.
while [ "$1" != -- ]; do shift; done; shift
trap 'kill -TERM $pid' TERM
"$@" & pid=$!
wait $pid; code=$?
[ $code != 143 ] || { wait $pid; code=$?; }
echo "code $code" >/box/code; id -u >/box/who
exit $code
"""


def wrapped(*argv, **rest):
    """A container whose program stands behind a wrapper that an init container has put into a volume."""
    words = ["/box/wrap", "emissary", "--", *argv]
    main = container("main", "", mpi=True, mpi_flags=["--mpi=pmix"], mpi_wrapper=3, mounts=SHARED, **rest)
    first = container("init", f"cat >/box/wrap <<'END'\n{WRAP}END\nchmod 755 /box/wrap", mounts=SHARED)
    side = container("side", "until [ -e /box/code ]; do sleep 0.1; done; cat /box/code /box/who", mounts=SHARED)
    return plan({**main, "argv": words}, side, init=[first], volumes=boxes())


def test_program_behind_a_wrapper_runs_as_ranks(pod):
    env = [{"name": "WORD", "value": "a b"}]
    script = 'echo "$WORD"; echo "$SLURM_PROCID $1"; id -u; pwd; echo bad >&2; exit 3'
    reported = pod.run(wrapped("sh", "-c", script, "sh", "$(X) *", env=env, cwd="/tmp")).ended()["containers"]["main"]
    assert (reported["exit_code"], reported["reason"]) == (3, "Error")
    assert lines(pod) == ["a b", "0 $(X) *", "1000", "/tmp"]
    assert "bad" in lines(pod, stream="stderr")
    assert lines(pod, "side") == ["code 3", "0"]


def test_signal_reaches_a_program_behind_a_wrapper(pod):
    script = "trap 'echo ending; exit 9' TERM; printf be%s gun; echo; while :; do sleep 0.1; done"
    kubelet = pod.run(wrapped("sh", "-c", script))
    wait_for_log(kubelet, "main", b"begun")
    kubelet.send({"type": "stop", "grace_s": 20})
    assert kubelet.ended()["containers"]["main"]["exit_code"] == 9
    assert lines(pod) == ["begun", "ending"]


def test_program_that_a_wrapper_cannot_find(pod):
    reported = pod.run(wrapped("no-such-program")).ended()["containers"]["main"]
    assert reported["exit_code"] == 255
    assert any("no-such-program" in line for line in lines(pod, stream="stderr"))
