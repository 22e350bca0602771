"""No text of an annotation becomes a word of sbatch or srun that a pod may not say, and none makes the kubelet stumble.

Annotations can be written by all who may create pods in a user's cluster; the words they become run as the user.
"""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.kubelet.admit import pod as refusals
from isthmus.kubelet.slurm import flags, script
from isthmus.kubelet.status import pod as status
from isthmus.kubelet.translate import pod as translate
from tests.support.pods.objects import SETTINGS, container, pod
from tests.support.pods.statuses import at

# What the kubelet itself says to sbatch; an annotation may change only the second half.
OWN = ("job-name", "comment", "extra", "output", "export", "no-requeue", "chdir")
MAY = ("account", "partition", "nodes", "ntasks", "cpus-per-task", "mem", "gres", "time", "nice", "qos", "constraint")
DANGEROUS = (  # noqa: SIM905  so that it can be read
    "--wrap --uid --gid --export --export-file --get-user-env --propagate --output --error --input --open-mode --chdir"
    " --bcast --container --job-name --comment --array --clusters --requeue --no-kill --signal --hold --priority"
    " --pod-network --prolog --task-prolog --task-epilog --epilog --multi-prog --jobid --het-group --overlap --x11"
    " --burst-buffer --bb --bbf --network --test-only --parsable --wait --ignore-pbs --cluster-constraint --spank"
    " --reboot --power --tres-bind --tres-per-task --container-id --send-libs --preserve-env --pty --slurmd-debug"
).split()
LETTERS = "oeiJDaMHkQvIhVupAtNncCwxLdGmBSbsOKWrlZX0"
NAMES = st.one_of(
    st.sampled_from([*DANGEROUS, *(f"--{name}" for name in MAY)]), st.sampled_from([f"-{letter}" for letter in LETTERS])
)
ODD = st.sampled_from(
    ["--", "-", ":", "'", '"', "\\", "\n", "\0", "$(id)", "`id`", ";", "%n", "%%", "/etc/passwd", "é"]
)
VALUES = st.one_of(ODD, st.text(max_size=12), st.sampled_from(["1", "batch", "END", "x" * 300, "--uid=0", "-o/x"]))
WORDS = st.builds(
    lambda name, sign, value: f"{name}{sign}{value}", NAMES, st.sampled_from(["=", " ", "", "='"]), VALUES
)
TEXTS = st.one_of(st.lists(st.one_of(WORDS, ODD), max_size=6).map(" ".join), st.text(max_size=60))


def annotated(**texts):
    return pod(annotations={name: text for name, text in texts.items() if text is not None})


def check_words(parsed, known):
    for name, value in parsed.options.items():
        assert name in known
        assert value is None or (value.isprintable() and value.isascii())
        # Slurm would read a file of the user's, and its mail program an option.
        assert name not in ("nodelist", "exclude") or "/" not in value
        assert name != "mail-user" or not value.startswith("-")
    assert len(parsed.words()) == len(parsed.options)
    assert all(word.startswith("--") and word[2:3].isalpha() for word in parsed.words())
    assert all(len(problem) < 400 for problem in parsed.problems)
    assert len(parsed.problems) <= 11


@given(TEXTS)
@example("--mail-user=-X")
@example("--nodelist=/home/alice/.ssh/id_ed25519")
@example("-x/etc/shadow")
@example("--account=a\0b")
@example("é " * 30_000)
def test_annotation_becomes_allowed_options_or_problems(text):
    check_words(flags.sbatch(annotated(**{flags.FLAGS: text})), flags.SBATCH)
    check_words(flags.srun(annotated(**{flags.MPI_FLAGS: text})), flags.SRUN)


@given(TEXTS, st.one_of(st.none(), VALUES), st.one_of(st.none(), VALUES))
@example("", "a\0b", None)
@example("", "a\n--uid=0", None)
def test_job_is_the_pods_own_whatever_it_says(text, account, partition):
    asked = annotated(**{flags.FLAGS: text, flags.ACCOUNT: account, flags.PARTITION: partition})
    if problems := refusals.problems(asked, SETTINGS):
        json.dumps(status.refused(asked, problems, at(0))).encode()
        return
    made, plain = (translate.job(one, SETTINGS) for one in (asked, pod()))
    assert [word for word in made.options if own(word)] == [word for word in plain.options if own(word)]
    assert all(word.startswith("--") and word.isprintable() for word in made.options)
    assert {word.partition("=")[0][2:] for word in made.options} <= {*OWN, "pod-network", *flags.SBATCH}
    assert script.text(made) == script.text(plain)


def own(word):
    return word.partition("=")[0][2:] in OWN


@given(VALUES)
@example("a\0b")
def test_namespace_names_no_account_that_is_none(value):
    space = {"metadata": {"name": "shop", "annotations": {flags.ACCOUNT: value}}}
    if flags.owner(space):
        return
    made = translate.job(pod(), SETTINGS, space)
    assert all(word.isprintable() and word.startswith("--") for word in made.options)
    assert [word for word in made.options if own(word)] == [
        word for word in translate.job(pod(), SETTINGS).options if own(word)
    ]


@pytest.mark.parametrize("option", DANGEROUS)
@pytest.mark.parametrize("form", ["{0}=x", "{0} x", "{0}", "--time=1 {0}=x", "'{0}=x'", "{0}='x\ny'"])
def test_dangerous_option_is_refused_in_every_form(option, form):
    text = form.format(option)
    found = flags.sbatch(annotated(**{flags.FLAGS: text}))
    assert found.problems
    assert not [word for word in found.words() if word.startswith(option)]
    # `--wait` and `--pty` of srun are two things; only what srun's list has may pass.
    given = flags.srun(annotated(**{flags.MPI_FLAGS: text}))
    assert given.problems or option == "--wait"


@given(st.sampled_from(["web; id", "$(id)", "'", "a b", "`id`", "\\"]))
def test_name_of_a_container_is_no_word_of_the_script(name):
    found = script.text(translate.job(pod(container(name)), SETTINGS))
    assert name not in found
