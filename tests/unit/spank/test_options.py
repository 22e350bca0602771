import pytest

PROGRAMS = pytest.mark.parametrize("program", ["srun", "sbatch"])


@PROGRAMS
@pytest.mark.parametrize("value", ["", "private", "flannel", "none"])
def test_network_that_exists_is_taken(plugin, program, value):
    result = plugin.run(program, HOST_OPTION=value)
    assert result.reported == ["init=0", "option=0", "post_opt=0", "exit=0"]
    assert result.logged == ""


@PROGRAMS
@pytest.mark.parametrize("value", ["privat", "Private", "private ", "x" * 5000, "%s%n"])
def test_network_that_does_not_exist_is_refused(plugin, program, value):
    result = plugin.run(program, HOST_OPTION=value)
    assert "option=-1" in result.reported
    choose = "there is no such network; choose private, flannel, routed, cni or none"
    assert result.errors == [f"isthmus: --pod-network={value}: {choose}"]


@PROGRAMS
def test_job_without_the_option_is_submitted_in_silence(plugin, program):
    assert plugin.run(program, "default=nonsense").logged == ""


@PROGRAMS
def test_asking_while_the_plugin_is_off_is_refused(plugin, program):
    result = plugin.run(program, "default=nonsense", HOST_OPTION="")
    assert "option=-1" in result.reported
    assert "off until an administrator corrects plugstack.conf: default=nonsense" in result.errors[0]


def test_refused_option_is_reported(plugin):
    errors = plugin.run("srun", HOST_REFUSES="1").errors
    assert errors[:2] == [f"isthmus: Slurm refused the option --{name}" for name in ("pod-network", "container-image")]


def test_reservation_is_handed_on(plugin):
    assert "control ISTHMUS_RESERVATION=api 1" in plugin.run("sbatch", ISTHMUS_RESERVATION="api").reported
    assert not [line for line in plugin.run("sbatch", ISTHMUS_RESERVATION="").reported if line.startswith("control")]
