"""Which side is up when; commands are real, what they start is the test's."""

import pytest

from isthmus.bench.launches import Column, Launch
from isthmus.bench.output import OutputError
from isthmus.bench.plain.turns import Commands, Sides, TurnError, Turns
from isthmus.bench.sizes import Table
from isthmus.clients.kube.errors import KubeError

PROBE = Launch(Table.FIGURE2, "probe", Column.MPIJOB, ("init",), 1, 1, 100, 5)


class Side:
    """A Kubernetes that writes down what it is asked, and fails as it is told."""

    def __init__(self, name, said):
        self.name, self._said, self.error = name, said, None

    def prepare(self):
        self._said.append(f"{self.name} prepares")

    def run(self, launch, name):
        self._said.append(f"{self.name} runs {launch.column} {name}")
        if self.error:
            raise self.error
        return "", 0.0, 1.0


@pytest.fixture
def said():
    return []


@pytest.fixture
def ours(said):
    return Side("ours", said)


@pytest.fixture
def plain(said):
    return Side("plain", said)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def commands(log):
    return Commands(*(["sh", "-c", f"echo {word} >>{log}"] for word in ("start", "stop")))


def sides(commands, ours, plain):
    return Sides(Turns(commands, lambda _: None), "slurm", ours, plain, PROBE)


def ran(log):
    return log.read_text().split() if log.exists() else []


def test_each_change_has_its_command_and_its_proof(commands, ours, plain, said, log):
    found = sides(commands, ours, plain)
    order = (Column.SLURM, Column.MPIJOB, Column.PLAIN, Column.PLAIN, Column.POD)
    assert [found.platform(column) for column in order] == ["slurm", ours, plain, plain, ours]
    assert ran(log) == ["stop", "start", "stop"]
    proof = ["ours prepares", "ours runs mpijob probe"]
    assert said == [*proof, "plain prepares", "plain runs plain-kubernetes probe", *proof]


def test_side_that_was_up_when_it_was_looked_at_is_not_started_again_and_is_proved(commands, ours, plain, said, log):
    found = sides(commands, ours, plain)
    found.turns.change(plain=True)
    assert found.platform(Column.PLAIN) is plain
    assert ran(log) == ["start"]
    assert said == ["plain prepares", "plain runs plain-kubernetes probe"]


def test_it_is_stopped_in_the_end_unless_it_is_down(commands, ours, plain, log):
    turns = sides(commands, ours, plain).turns
    turns.end()
    turns.end()
    assert ran(log) == ["stop"]
    turns.to(plain=True)
    turns.end()
    assert ran(log) == ["stop", "start", "stop"]


def test_sides_that_are_always_up_are_proved_once(ours, plain, said):
    found = sides(Commands(), ours, plain)
    for column in (Column.SLURM, Column.PLAIN) * 3:
        found.platform(column)
    found.turns.end()
    assert sorted(said) == sorted(
        ["ours prepares", "ours runs mpijob probe", "plain prepares", "plain runs plain-kubernetes probe"]
    )


def test_cluster_without_kubernetes_is_compared_by_its_jobs(commands, plain, said):
    found = sides(commands, None, plain)
    assert [found.platform(column) for column in (Column.SLURM, Column.PLAIN)] == ["slurm", plain]
    assert said == ["plain prepares", "plain runs plain-kubernetes probe"]


@pytest.mark.parametrize("is_plain", [True, False])
def test_command_that_fails_ends_the_session_and_is_repeated(ours, plain, log, is_plain):
    broken = ["sh", "-c", f"echo tried >>{log}; echo no power >&2; exit 4"]
    turns = sides(Commands(broken, broken), ours, plain).turns
    for _ in range(2):
        with pytest.raises(TurnError, match="ended with status 4\nno power\nnothing is measured beside what may be up"):
            turns.to(plain=is_plain)
    assert ran(log) == ["tried"] * 2


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (Column.PLAIN, OutputError("MPIJob probe is New"), "the plain Kubernetes does not run what it should: MPIJob"),
        (Column.SLURM, KubeError("no answer"), "your Kubernetes does not run what it should: no answer"),
    ],
)
def test_side_that_does_not_work_after_its_start_ends_the_session(commands, ours, plain, column, error, words):
    (plain if column is Column.PLAIN else ours).error = error
    with pytest.raises(TurnError, match=words):
        sides(commands, ours, plain).platform(column)
