from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("managed")
MARK = "/run/isthmus-test-"


@pytest.fixture(params=["prolog", "epilog"])
def script(request, computes):
    """A script in one of the folders that writes down its job's user; yields where, but for the job's id."""
    kind, node = request.param, computes[0]
    path, mark = f"/etc/slurm/{kind}.d/99-isthmus-test", f"{MARK}{kind}-"
    # slurmd drains a node for a script that it cannot run, so it sees a whole one.
    made = f"/etc/slurm/isthmus-test-{kind}"
    node.output(f"printf '#!/bin/sh\\necho $SLURM_JOB_USER > {mark}$SLURM_JOB_ID\\n' > {made} && chmod 755 {made}")
    node.output(f"mv {made} {path}")
    yield node, mark
    node.run(f"rm -f {path} {mark}*")


# Others' jobs on the node would meet a script that goes meanwhile.
@pytest.mark.disruptive
def test_scripts_of_the_folder_run(script, login, user):
    node, mark = script
    job = login.run_as(user, f"srun --nodelist={node.name} printenv SLURM_JOB_ID")
    # The epilog runs after srun has returned.
    seen = node.output(f"timeout 120 sh -c 'until [ -s {mark}{job} ]; do sleep 0.2; done; cat {mark}{job}'")
    assert seen == user


def test_folders_are_roots(computes):
    for node in computes:
        for folder in ("prolog.d", "epilog.d"):
            assert node.output(f"stat -c '%a %U' /etc/slurm/{folder}") == "755 root"


def test_logrotate_is_valid_and_knows_slurm(controller, computes, settings):
    folder = Path(settings["SlurmctldLogFile"]).parent
    for node in (controller, *computes):
        tried = node.run("logrotate -d /etc/logrotate.conf")
        assert tried.rc == 0, tried.stderr
        assert "error:" not in tried.stderr
        assert f"considering log {folder}/" in tried.stderr


def test_services_run_and_are_enabled(controller, computes):
    expected = [(controller, ["munge", "mariadb", "slurmdbd", "slurmctld"])]
    expected += [(node, ["munge", "slurmd"]) for node in computes]
    for node, services in expected:
        for name in services:
            service = node.host.service(name)
            assert service.is_running, (node.name, name)
            assert service.is_enabled, (node.name, name)
