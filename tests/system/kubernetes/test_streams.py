"""kubectl at a terminal: run, attach, exec, its size, and ctrl-C."""

import json
import shlex

import pytest

from tests.support.clusters.cluster import ROOT

PROGRAM = ".isthmus-terminal.py"
LIMIT_S = 180
ENTER, CTRL_C = "\r", "\x03"
ATTACHED = "try pressing enter"


@pytest.fixture(scope="module")
def terminal(space):
    """Run kubectl at a terminal of the login node, in steps."""
    login, user = space.cluster.login, space.cluster.user
    source = (ROOT / "tests/support/remote/terminal.py").read_text()
    login.run_as(user, f"cat > {PROGRAM} <<'END'\n{source}\nEND")

    def talk(command, *steps):
        argv = ["kubectl", "--kubeconfig=.isthmus/kubeconfig", f"--namespace={space.name}", *shlex.split(command)]
        asked = json.dumps({"argv": argv, "steps": steps, "limit_s": LIMIT_S})
        return json.loads(login.run_as(user, f"python3 {PROGRAM} <<< {shlex.quote(asked)}"))

    yield talk
    login.run_as(user, f"rm {PROGRAM}")


def sized(rows, columns):
    """Return steps that end when the pod's terminal has this size; what is typed has quotes around it."""
    return [["resize", [rows, columns]], *is_sized(rows, columns)]


def is_sized(rows, columns):
    """Return steps that wait until the pod's terminal has this size."""
    wanted = f"{rows} {columns}"
    return [
        ["send", f"until stty size 2>&1 | grep -x '{wanted}'; do sleep 0.1; done{ENTER}"],
        ["expect", rf"{wanted}\r$"],
    ]


def say(text):
    """Return steps that run a command and wait for what it prints, which is not what is typed."""
    return [["send", f"{text}{ENTER}"], ["expect", r"it is \w+\r$"]]


def test_run_opens_a_terminal_and_reports_the_exit_code(space, terminal):
    run = f"run guest -it --rm --restart=Never --image={space.images['busybox']} -- sh"
    reported = terminal(
        run, ["expect", ATTACHED], *say("echo it is $((6 * 7))"), *sized(33, 101), ["send", f"exit 5{ENTER}"]
    )
    assert "it is 42" in reported["shown"]
    assert reported["rc"] == 5
    # Or the log, once more.
    assert "couldn't attach" not in reported["shown"]
    assert space.try_kubectl("get pod guest").rc == 1


def test_attach_finds_the_shell_that_was_left(space, terminal):
    space.ready("pod/shell")
    attach = "attach -it shell"
    left = terminal(attach, ["expect", ATTACHED], *say("kept=$((6 * 7)); echo it is $((1 + 1))"), ["hang_up", None])
    assert left["rc"] != 0
    found = terminal(attach, ["expect", ATTACHED], *say("echo it is $kept"), *sized(20, 70), ["send", f"exit 3{ENTER}"])
    assert "it is 42" in found["shown"]
    assert found["rc"] == 0
    assert space.ended("shell")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_exec_has_a_terminal_that_follows_its_window(space, terminal):
    space.ready("pod/house")
    reported = terminal("exec -it house -- sh", *is_sized(24, 80), *sized(40, 132), ["send", f"exit{ENTER}"])
    assert reported["rc"] == 0


def test_ctrl_c_ends_a_shells_command_and_not_the_shell(space, terminal):
    space.ready("pod/house")
    # Who says so has the terminal: a shell that was still about to start it would not hand the signal on.
    begun = [["send", f"sh -c 'echo it is $((1 + 1)); exec sleep 1000'{ENTER}"], ["expect", r"it is 2\r$"]]
    steps = [*begun, ["send", CTRL_C], *say("echo it is $?"), ["send", f"exit 7{ENTER}"]]
    reported = terminal("exec -it house -- sh", *steps)
    assert "it is 130" in reported["shown"]
    assert reported["rc"] == 7


def test_ctrl_c_ends_a_program(space, terminal):
    space.ready("pod/house")
    begun = ["expect", r"begun\r$"]
    reported = terminal("exec -it house -- sh -c 'echo begun; exec sleep 999'", begun, ["send", CTRL_C])
    assert reported["rc"] == 130
    running = space.kubectl("exec house -- ps -o args")
    assert "sleep 1000" in running
    assert "sleep 999" not in running
