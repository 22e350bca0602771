import json
import os
import signal
import time
from pathlib import Path

import pytest

# In Apptainer's place: prints its arguments, and becomes the program that holds a container open.
APPTAINER = """#!/bin/sh
echo "$*" >> "$FOLDER/starts"
exec env IMAGE_SAYS=yes HOME=/image KEEP=image {hold}
"""
ASKED = "container-image=debian:13"


@pytest.fixture
def apptainer(plugin, tmp_path):
    """A plan, as `isthmus-step-container` prints it, whose Apptainer is the script above."""
    script = tmp_path / "apptainer"
    script.write_text(APPTAINER.format(hold=plugin.library.parent / "isthmus_hold"))
    script.chmod(0o755)
    plan = {
        "schema": 1,
        "command": [str(script), "exec", "image", "hold"],
        "environment": [f"FOLDER={tmp_path}", f"PATH={os.environ['PATH']}"],
        "kept": ["HOME", "KEE*"],
        "entrypoint": [],
        "workdir": str(tmp_path),
    }
    yield plan
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and holds(entry, tmp_path):
            os.kill(int(entry.name), signal.SIGKILL)


def holds(process, folder):
    try:
        return f"FOLDER={folder}\0".encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def command(folder, body):
    script = folder / "isthmus"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return f"command={script}"


def step(plugin, plan, **environment):
    words = {"HOST_CONTAINER": ASKED, "ISTHMUS_STEP_CONTAINER": json.dumps(plan), "HOST_UID": str(os.getuid())}
    return plugin.run("step", **words | environment)


def user_reads(result):
    return [line for line in result.errors if "cannot use its container" in line]


def test_step_without_the_option_enters_nothing(plugin, apptainer):
    reported = plugin.run("step", ISTHMUS_STEP_CONTAINER=json.dumps(apptainer)).reported
    assert "task=0" in reported
    assert not [line for line in reported if line.startswith(("setns", "chroot"))]


@pytest.mark.parametrize("step_id", [0xFFFFFFFA, 0xFFFFFFFB, 0xFFFFFFFC])
def test_batch_script_and_the_like_stay_on_the_node(plugin, step_id):
    reported = plugin.run("step", HOST_CONTAINER=ASKED, HOST_STEP=str(step_id)).reported
    assert "task=0" in reported
    assert "chroot ." not in reported


def test_task_enters_user_and_mounts_and_root(plugin, apptainer):
    reported = step(plugin, apptainer).reported
    start = reported.index("setns user")
    assert reported[start : start + 3] == ["setns user", "setns mounts", "chroot ."]


def test_container_is_started_once_a_node(plugin, apptainer, tmp_path):
    reported = step(plugin, apptainer, HOST_TASKS="3").reported
    assert reported.count("setns mounts") == reported.count("task=0") == 3
    assert (tmp_path / "starts").read_text() == "exec image hold\n"


def test_container_ends_with_the_last_task(plugin, apptainer, tmp_path):
    seen = f'tr "\\0" "\\n" < $p/environ 2>/dev/null | grep -q "^FOLDER={tmp_path}$" && echo held'
    left = f"for p in /proc/[0-9]*; do {seen}; done"
    result = step(plugin, apptainer, HOST_TASKS="2", HOST_COMMAND=f"{left}; true")
    assert result.reported.count("held") >= 2
    assert not [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal() and holds(entry, tmp_path)]


def test_images_variables_win_but_for_those_kept(plugin, apptainer, tmp_path):
    shown = 'echo "$IMAGE_SAYS $HOME $KEEP $(pwd) <$ISTHMUS_STEP_CONTAINER>"'
    reported = step(plugin, apptainer, HOST_COMMAND=shown, HOME="/home/alice", KEEP="job").reported
    assert f"yes /home/alice job {tmp_path} <>" in reported


def test_entrypoint_comes_before_the_command(plugin, apptainer):
    reported = step(plugin, apptainer | {"entrypoint": ["/entry", "--flag"]}).reported
    assert [line for line in reported if line.startswith("prepend")] == ["prepend /entry", "prepend --flag"]


def test_program_has_no_child_of_ours(plugin, apptainer):
    reported = step(
        plugin, apptainer, HOST_COMMAND='read -r line < "/proc/$$/task/$$/children"; echo "has <$line>"'
    ).reported
    assert "has <>" in reported


def test_no_descriptor_is_left_to_the_program(plugin, apptainer):
    shown = step(plugin, apptainer, HOST_COMMAND="ls -l /proc/self/fd").reported
    open_files = [line.rpartition(" -> ")[2] for line in shown if " -> " in line]
    assert open_files
    assert not [path for path in open_files if path.startswith(("user:", "mnt:", "/memfd")) or path == "/"]


@pytest.mark.parametrize("call", ["user", "mounts", "chroot"])
def test_task_that_cannot_enter_is_not_run(plugin, apptainer, tmp_path, call):
    result = step(plugin, apptainer, HOST_FAIL=call, HOST_COMMAND=f"touch {tmp_path}/ran")
    assert "task=1" in result.reported
    assert not (tmp_path / "ran").exists()
    assert user_reads(result)[0].endswith("its namespaces cannot be entered: Operation not permitted")


def test_words_of_apptainer_reach_the_user_once(plugin, apptainer, tmp_path):
    (tmp_path / "apptainer").write_text("#!/bin/sh\necho noise >&2\necho 'FATAL: no such image' >&2\nexit 255\n")
    result = step(plugin, apptainer, HOST_TASKS="2")
    assert result.reported.count("task=1") == 2
    (error,) = user_reads(result)
    assert error.endswith("so the task was not started: FATAL: no such image")


def test_missing_apptainer_is_named(plugin, apptainer):
    result = step(plugin, apptainer | {"command": ["/none/apptainer"]})
    assert "/none/apptainer cannot be started: No such file or directory" in user_reads(result)[0]


def test_folder_that_the_image_lacks_is_named(plugin, apptainer):
    result = step(plugin, apptainer | {"workdir": "/none"})
    assert "/none in it cannot be entered: No such file or directory; give --container-workdir" in user_reads(result)[0]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', '{"schema": 1, "command": "x"}', '{"schema": 1}'])
def test_plan_of_another_form_starts_nothing(plugin, text):
    result = plugin.run("step", HOST_CONTAINER=ASKED, ISTHMUS_STEP_CONTAINER=text)
    assert "task=1" in result.reported
    assert "is of another version" in user_reads(result)[0] or "did not come here" in user_reads(result)[0]


def test_plan_that_got_lost_is_reported(plugin):
    result = plugin.run("step", HOST_CONTAINER=ASKED)
    assert "leave --export out" in user_reads(result)[0]


def test_killed_starter_does_not_keep_the_others_waiting(plugin, apptainer, tmp_path):
    # The script kills the task that waits for it, its parent's parent being gone by then.
    (tmp_path / "apptainer").write_text(f'#!/bin/sh\nkill -9 "$(cat {tmp_path}/task)"\nsleep 1\n')
    begun_s = time.monotonic()
    result = step(plugin, apptainer, HOST_TASKS="2", HOST_TASK_FILE=str(tmp_path / "task"))
    assert "the task that started it was killed" in "".join(result.errors)
    assert time.monotonic() - begun_s < 60


def test_srun_leaves_the_answer_to_the_step(plugin, tmp_path):
    word = command(tmp_path, f'echo "$@" > {tmp_path}/asked; echo answer')
    result = plugin.run("srun", word, HOST_CONTAINER=f"{ASKED}\ncontainer-writable", HOST_SHOW="ISTHMUS_STEP_CONTAINER")
    assert "ISTHMUS_STEP_CONTAINER=answer\n" in "\n".join(result.reported) + "\n"
    assert (tmp_path / "asked").read_text() == "--container-image=debian:13 --container-writable\n"


def test_srun_without_the_option_forgets_an_answer(plugin, tmp_path):
    word = command(tmp_path, f"touch {tmp_path}/asked")
    result = plugin.run("srun", word, ISTHMUS_STEP_CONTAINER="old", HOST_SHOW="ISTHMUS_STEP_CONTAINER")
    assert "ISTHMUS_STEP_CONTAINER is unset" in result.reported
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("program", ["srun", "sbatch"])
def test_refused_options_end_the_program(plugin, tmp_path, program):
    word = command(tmp_path, "echo isthmus: no such image >&2; exit 1")
    result = plugin.run(program, word, HOST_CONTAINER=ASKED, HOST_EXIT="1")
    assert "isthmus: no such image" in result.logged
    assert not [line for line in result.reported if line.startswith("post_opt")]


def test_sbatch_only_checks(plugin, tmp_path):
    word = command(tmp_path, f'echo "$@" > {tmp_path}/asked')
    assert "post_opt=0" in plugin.run("sbatch", word, HOST_CONTAINER=ASKED).reported
    assert (tmp_path / "asked").read_text() == "--check --container-image=debian:13\n"
