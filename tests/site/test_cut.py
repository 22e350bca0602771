import json

import pytest

from tests.support import jobs, playbooks

PLAYBOOK = "playbooks/slurm.yml"
TIMEOUT_S = 17  # neither Slurm's own MessageTimeout nor the test bed's
LIVE = f"scontrol show config | grep -q '^MessageTimeout *= {TIMEOUT_S} sec'"


@pytest.fixture
def changed(controller, whole):
    """Another setting for slurm.conf, as an extra variable; afterwards the site is as it was."""
    wanted = controller.variables["slurm_conf_extra"] | {"MessageTimeout": TIMEOUT_S}
    yield "-e", json.dumps({"slurm_conf_extra": wanted})
    assert controller.name in playbooks.succeed("cut_back", PLAYBOOK).changed


def test_restart_that_a_cut_run_owed_is_made_up_for(controller, computes, changed):
    playbooks.cut("TASK [slurm : Run munge and MariaDB]", PLAYBOOK, *changed)
    written = controller.output("cat /etc/slurm/slurm.conf")
    assert f"MessageTimeout={TIMEOUT_S}" in written
    assert controller.run(LIVE).rc != 0
    recap = playbooks.succeed("cut_again", PLAYBOOK, *changed)
    assert recap.changed == {controller.name}
    assert controller.output("cat /etc/slurm/slurm.conf") == written
    assert controller.run(LIVE).rc == 0
    jobs.wait_for_nodes(controller, *(node.name for node in computes))
    for node in computes:
        assert f"MessageTimeout={TIMEOUT_S}" in node.output("cat /run/slurm/conf/slurm.conf")
    assert not playbooks.succeed("cut_third", PLAYBOOK, *changed).changed
