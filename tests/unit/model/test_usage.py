"""What jobs used, summed up by pod, namespace, account and user."""

import pytest

from isthmus.model.pod_job import accounted_as, accounted_pod
from isthmus.model.slurm.usage import By, Used, summed

PLANE = "isthmus-control-plane"


def job(extra="", name="any", **other):
    given = {"user": "alice", "account": "users", "elapsed_s": 3600, "cpu_s": 7200, "used_s": 1800.0}
    return Used(**{"id": "1", **given, "memory_mib": 2048.0, "gpus": 1, "name": name, "extra": extra, **other})


JOBS = [
    job("pod=default/web"),
    job("pod=default/web"),
    job("pod=default/db", account="lab"),
    job("pod=team/web", user="bob"),
    job("", PLANE, cpu_s=3600),
    job("a note of its user", "sim"),
    job("pod=Default/../web", "sim"),
]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (By.POD, {"default/web": 2, "default/db": 1, "team/web": 1, "(control plane)": 1, "(other jobs)": 2}),
        (By.NAMESPACE, {"default": 3, "team": 1, "(control plane)": 1, "(other jobs)": 2}),
        (By.ACCOUNT, {"users": 6, "lab": 1}),
        (By.USER, {"alice": 6, "bob": 1}),
    ],
)
def test_jobs_are_counted_by_key(by, expected):
    assert {row.key: row.jobs for row in summed(JOBS, by, PLANE)} == expected


def test_hours_are_summed():
    (row,) = summed([job("pod=a/b"), job("pod=a/b", elapsed_s=1800, cpu_s=1800, used_s=0.0, gpus=0)], By.POD, PLANE)
    assert (row.cpu_hours, row.used_cpu_hours) == (2.5, 0.5)
    assert (row.memory_gib_hours, row.gpu_hours) == (3.0, 1.0)


def test_the_largest_is_first_and_ties_are_by_name():
    rows = summed([job("pod=b/x"), job("pod=a/x"), job("pod=c/x", cpu_s=9000)], By.NAMESPACE, PLANE)
    assert [row.key for row in rows] == ["c", "a", "b"]


def test_a_pod_is_read_back():
    assert accounted_pod(accounted_as("team", "web-0.a")) == ("team", "web-0.a")


@pytest.mark.parametrize("extra", ["", "pod=", "pod=a", "pod=a/b/c", "pod=a/b\n", "xpod=a/b", "pod=A/b", "pod=a/[b]"])
def test_other_texts_are_no_pod(extra):
    assert accounted_pod(extra) is None
