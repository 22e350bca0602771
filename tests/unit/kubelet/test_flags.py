"""Options that a pod may ask for by annotation."""

import pytest

from isthmus.kubelet.slurm import annotations as notes
from isthmus.kubelet.slurm import flags
from tests.support.pods.objects import pod


def sbatch(text):
    return flags.sbatch(pod(annotations={flags.FLAGS: text}))


def srun(text):
    return flags.srun(pod(annotations={flags.MPI_FLAGS: text}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("--time=1:00:00", ("--time=1:00:00",)),
        ("--time 10", ("--time=10",)),
        ("-t 10", ("--time=10",)),
        ("-t10", ("--time=10",)),
        ("-N 2 -n4", ("--nodes=2", "--ntasks=4")),
        ("--nodes=1 --nodes=2", ("--nodes=2",)),
        ("--exclusive", ("--exclusive",)),
        ("--exclusive=user", ("--exclusive=user",)),
        ("--exclusive --nice=5", ("--exclusive", "--nice=5")),
        ("--constraint='a100&avx512'", ("--constraint=a100&avx512",)),
        ('-C "[rack1|rack2]"', ("--constraint=[rack1|rack2]",)),
        ("--gpus-per-node=a100:2", ("--gpus-per-node=a100:2",)),
        ("-G 2 --mem-per-gpu=4G", ("--gpus=2", "--mem-per-gpu=4G")),
        ("--dependency=afterok:12", ("--dependency=afterok:12",)),
        ("-p long -A physics -q high", ("--partition=long", "--account=physics", "--qos=high")),
        ("--reservation='a;b $(c) `d`'", ("--reservation=a;b $(c) `d`",)),
        ("--contiguous -O", ("--contiguous", "--overcommit")),
        ("--mail-type=END --mail-user=a@b.c", ("--mail-type=END", "--mail-user=a@b.c")),
    ],
)
def test_option_is_one_word(text, words):
    found = sbatch(text)
    assert (found.words(), found.problems) == (words, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--wrap=id", "a pod's job runs the pod"),
        ("--output=/tmp/x", "what containers write belongs to kubectl logs"),
        ("-o /tmp/x", "kubectl logs"),
        ("-e/tmp/x", "kubectl logs"),
        ("--input=x", "kubectl logs"),
        ("--open-mode=append", "kubectl logs"),
        ("--uid=0", "a pod runs as its owner"),
        ("--gid 0", "a pod runs as its owner"),
        ("--export=ALL", "env of the pod"),
        ("--export-file=x", "env of the pod"),
        ("--get-user-env", "env of the pod"),
        ("-D /", "workingDir"),
        ("--chdir=/", "workingDir"),
        ("--container=x", "workingDir"),
        ("-J name", "identify the pod of a job"),
        ("--comment=x", "identify the pod of a job"),
        ("-a 1-10", "a pod is one job"),
        ("-M other", "a pod is one job"),
        ("--requeue", "the life of a pod"),
        ("--signal=KILL@1", "the life of a pod"),
        ("-H", "the life of a pod"),
        ("--pod-network=none", "hostNetwork"),
        ("--priority=9", "priorityClassName"),
        ("--frobnicate", "is not an option a pod may set"),
        ("--time-", "is not an option a pod may set"),
        ("-Z", "is not an option a pod may set"),
        ("script.sh", "is not an option a pod may set"),
        ("-- script.sh", "is not an option a pod may set"),
        (":", "is not an option a pod may set"),
        ("-", "is not an option a pod may set"),
        ("--time", "--time has no value; write --time=VALUE"),
        ("--time=", "--time has no value"),
        ("--time --nodes=2", "--time has no value"),
        ("--contiguous=yes", "--contiguous takes no value"),
        ("--account='a\nb'", "not printable ASCII"),
        ("--account=\u00e4", "not printable ASCII"),
        ("--time='1", "cannot be read: No closing quotation; check its quotes"),
    ],
)
def test_other_words_are_refused_with_reason(text, why):
    found = sbatch(text)
    assert why in found.problems[0]
    assert flags.FLAGS in found.problems[0]
    assert "; " in found.problems[0]


def test_refused_word_is_no_option():
    found = sbatch("--time=5 --wrap=id -o /x")
    assert found.words() == ("--time=5",)


@pytest.mark.parametrize("text", ["--output=x", "--uid=0", "--multi-prog", "--chdir=/", "--bcast", "--jobid=1", "id"])
def test_srun_has_its_own_list(text):
    assert srun(text).problems


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--mpi=pmix --cpu-bind=cores -n 8", ("--mpi=pmix", "--cpu-bind=cores", "--ntasks=8")),
        ("-K1 -l", ("--kill-on-bad-exit=1", "--label")),
    ],
)
def test_srun_options_are_words(text, words):
    assert srun(text).words() == words


ARGO = ["/var/run/argo/argoexec", "emissary", "--loglevel", "info", "--", "ep.A.4"]


@pytest.mark.parametrize(
    ("argv", "said", "count"),
    [
        (ARGO, {}, 5),
        ([*ARGO, "--", "x"], {}, 5),
        (ARGO[1:], {}, 0),
        (["argoexec", "wait", "--", "x"], {}, 0),
        (ARGO[:-1], {}, 0),
        (["tini", "--", "ring"], {}, 0),
        (["nice", "-n", "5", "--", "ring"], {notes.MPI_WRAPPER: "true"}, 4),
        (["ring"], {notes.MPI_WRAPPER: "true"}, 0),
    ],
)
def test_words_of_a_wrapper(argv, said, count):
    assert flags.wrapper(pod(annotations={flags.FLAGS: "-n2", **said}), argv) == count


def test_annotations_have_two_names():
    asked = pod(annotations={"slurm.hpk.io/flags": "--wrap=x -n 4", "slurm.hpk.io/mpi-flags": "--mpi=pmix"})
    assert flags.mpi(asked) == ("--mpi=pmix",)
    assert flags.sbatch(asked).problems[0].startswith("annotation slurm.hpk.io/flags: '--wrap=x' is not allowed")


def test_annotation_that_nobody_knows_is_named():
    asked = pod(annotations={"slurm.hpk.io/mpi_flags": "x", "slurm-job.hpk.io/what": "x", "else/flags": "x"})
    assert [*notes.unknown(asked)] == [
        "annotation slurm-job.hpk.io/what is ignored: it is not known",
        "annotation slurm.hpk.io/mpi_flags is ignored: it is not known; did you mean slurm.hpk.io/mpi-flags?",
    ]
