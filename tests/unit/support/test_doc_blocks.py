import pytest

from tests.support.doc_blocks import commands, fits, runnable

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
        ("```yaml\nisthmus: up\n```", []),
        ("1. On it:\n\n   ```sh\n   isthmus info\n   ```", [["isthmus", "info"]]),
    ],
)
def test_commands_of_blocks(block, found):
    assert list(commands(block)) == found
