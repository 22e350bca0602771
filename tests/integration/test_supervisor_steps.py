"""Containers that srun starts; Slurm itself is not needed for what the supervisor does."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from isthmus.supervisor.runtime import steps
from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import action, container, plan
from tests.support.servers.apptainer_host import UID
from tests.support.wait import wait


def is_python_of_the_user(pid):
    """Whether it is no shell; a test bed on this machine has steps, too, of other users."""
    process = Path(f"/proc/{pid}")
    # Also a process that goes meanwhile.
    with suppress(OSError):
        name = (process / "cmdline").read_bytes().split(b"\0")[0].rpartition(b"/")[2]
        return name.startswith(b"python") and f"\nUid:\t{UID}\t" in (process / "status").read_text()
    return False


def test_container_with_a_limit_of_its_own_is_a_step(pod):
    env = [{"name": "HIDDEN", "value": "hidden text"}]
    main = container("main", "echo $HIDDEN; id -u; touch /x; read word; echo $word; exit 7", memory_mib=64, env=env)
    kubelet = pod.run(plan({**main, "stdin": True}))
    wait_for_log(kubelet, "main", b"hidden text\n0\n")
    assert kubelet.exec("main", "ls", "/x").finish()[1] == b"/x\n"
    stream = kubelet.open("attach", container="main", tty=False, stdin=True)
    stream.send(0, b"typed\n")
    assert stream.finish()[:2] == (0, b"typed\n")
    reported = kubelet.ended()["containers"]["main"]
    assert (reported["reason"], reported["exit_code"]) == ("Error", 7)
    said = (pod.folder / "slurm.log").read_text()
    assert "isthmus.supervisor.runtime.step" in said
    assert "hidden text" not in said


def test_what_is_run_in_it_counts_into_the_step_too(pod):
    hook = action("exec", argv=["sleep", "27183"])
    kubelet = pod.run(plan(container("main", "exec sleep 27181", memory_mib=64, post_start=hook)))
    wait(lambda: pod.processes(b"27183"), bool)
    stream = kubelet.open("exec", container="main", argv=["sleep", "27184"], tty=False, stdin=False)
    found = wait(lambda: [pod.processes(word) for word in (b"27181", b"27183", b"27184")], all)
    step = next(pid for pid in pod.processes(b"isthmus.supervisor.runtime.step") if is_python_of_the_user(pid))
    assert all(pids[0] in pod.below(step) for pids in found)
    stream.cancel()
    wait(lambda: pod.processes(b"27184"), lambda left: not left)
    assert kubelet.exec("main", "sh", "-c", "echo $HOSTNAME; exit 5").finish()[:2] == (5, b"web-0\n")
    assert "No such file" in kubelet.exec("main", "/no/such").refusal()


def test_many_programs_in_a_step_at_once(pod):
    kubelet = pod.run(plan(container("main", "exec sleep 1000", memory_mib=64)))
    kubelet.until("main", ready=True)
    streams = [kubelet.exec("main", "sh", "-c", f"echo {number}; exit {number}") for number in range(30)]
    assert [stream.finish()[:2] for stream in streams] == [(number, f"{number}\n".encode()) for number in range(30)]


def test_program_of_a_step_that_is_not_there(pod):
    reported = pod.run(plan(container("main", "", argv=["/no/such"], memory_mib=64))).ended()["containers"]["main"]
    assert (reported["reason"], reported["message"]) == ("StartError", 'exec: "/no/such": No such file or directory')


def test_step_that_slurm_refuses(pod):
    reported = pod.run(plan(container("main", "exit 0", memory_mib=65))).ended()["containers"]["main"]
    assert (reported["reason"], reported["message"]) == ("StartError", steps.refusal(65))
    assert "no step of 65 MiB in 3 tries" in reported["message"]
    assert (pod.folder / "slurm.log").read_text().count("srun: unrecognized option '--mem=65'") == 3


def test_step_that_a_busy_slurm_refuses_once(pod):
    reported = pod.run(plan(container("main", "exit 0", memory_mib=63))).ended()["containers"]["main"]
    assert (reported["reason"], reported["exit_code"]) == ("Completed", 0)
    assert "srun: error: busy" in (pod.folder / "slurm.log").read_text()


def test_end_is_reported_before_srun_has_ended(pod):
    kubelet = pod.run(plan(container("main", "exit 3", memory_mib=62)))
    kubelet.until("main", state="terminated", exit_code=3)
    wait(lambda: pod.processes(b"6.2"))
    assert kubelet.ended()["phase"] == "ended"


def test_step_ends_with_its_supervisor(pod):
    kubelet = pod.run(plan(container("main", "exec sleep 27182", memory_mib=64)))
    kubelet.until("main", ready=True)
    wait(lambda: pod.processes(b"27182"))
    os.kill(pod.supervisor(), signal.SIGKILL)
    wait(lambda: pod.processes(b"27182") + pod.processes(), lambda left: not left)


def test_mpi_program_is_started_by_srun(pod):
    env = [{"name": "HIDDEN", "value": "hidden text"}]
    script = "echo $HIDDEN $SLURM_PROCID; id -u; exit 3"
    report = pod.run(plan(container("main", script, mpi=True, mpi_flags=["--mpi=pmix"], env=env))).ended()
    assert report["containers"]["main"]["exit_code"] == 3
    lines = (pod.folder / "logs/main/0.log").read_text().splitlines()
    assert [line.split(" ", 3)[3] for line in lines if " stdout " in line] == ["hidden text 0", "1000"]
    assert not [line for line in lines if " stderr " in line and "hidden text" in line]
