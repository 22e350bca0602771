import pytest

from tests.support.doc_blocks import Block, blocks, commands, fits, runnable

PAGE = """
<!-- run -->
```sh
export A=1
isthmus up
```

<!-- output -->
```text
job 12
```

```sh
isthmus down
```

<!-- run until it fits -->
```sh
kubectl get pods
```
"""


def test_marked_blocks_alone_are_run():
    first, second = runnable(PAGE)
    assert (first.script, first.printed, first.until) == ("export A=1\nisthmus up\n", "job 12\n", False)
    assert (second.script, second.printed, second.until) == ("kubectl get pods\n", "", True)


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("run", {"place": "the reader"}),
        ("run on the controller", {"place": "the controller"}),
        ("run\nprepare\n", {"place": "the reader", "before": "prepare"}),
        (
            "covered by tests/a.py::test_b,\ntests/c.py::test_d",
            {"covered_by": ("tests/a.py::test_b", "tests/c.py::test_d")},
        ),
        ("not run: no account", {"reason": "no account"}),
        ("runs", {}),
        ("run on the moon", {}),
    ],
)
def test_marks_say_what_becomes_of_a_block(mark, expected):
    (block,) = blocks(f"text\n\n<!-- {mark} -->\n```sh\ntrue\n```\n")
    assert block == Block(4 + mark.count("\n"), "true\n", **expected)
    assert block.marked is bool(expected)


def test_mark_within_a_list_counts():
    (block,) = blocks("1. Do:\n\n   <!-- run -->\n   ```sh\n   true\n   ```\n")
    assert (block.script, block.place) == ("true\n", "the reader")


def test_comment_before_other_text_is_no_mark():
    (block,) = blocks("<!-- run -->\nSo:\n```sh\ntrue\n```\n")
    assert not block.marked


@pytest.mark.parametrize(
    ("printed", "output", "fitting"),
    [
        ("job 12", "your job 345, running", True),
        ("web-... 1/1 ... Running", "NAME READY\nweb-7d9-x 1/1  Running 0", True),
        ("slurm ... Ready", "slurm   NotReady", False),
        ("first\nlast", "first\nbetween\nlast", True),
        ("last\nfirst", "first\nlast", False),
        ("a.b", "axb", False),
        ("", "anything", True),
    ],
)
def test_output_fits_loosely(printed, output, fitting):
    assert fits(printed, output) is fitting


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("```sh\nA=1 isthmus up; squeue --me  # yours\n```", [["isthmus", "up"], ["squeue", "--me"]]),
        (
            "```console\nalice@login:~$ srun x $(isthmus pull a)\n13.7\n```",
            [["srun", "x"], ["isthmus", "pull", "a"]],
        ),
        (
            "```sh\ncat <<'END'\nisthmus nonsense\nEND\nkubectl apply -f f\n```",
            [["cat"], ["kubectl", "apply", "-f", "f"]],
        ),
        ("```sh\nisthmus shell $job.c2 -- ss\n```", [["isthmus", "shell", "$job.c2", "--", "ss"]]),
        ("```yaml\nisthmus: up\n```", []),
        ("1. On it:\n\n   ```sh\n   isthmus info\n   ```", [["isthmus", "info"]]),
    ],
)
def test_commands_of_blocks(block, found):
    assert list(commands(block)) == found
