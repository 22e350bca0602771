from tests.support import playbooks

QUIET = {"changed": 0, "unreachable": 0, "failed": 0}


def test_second_run_changes_nothing(nodes):
    recap = playbooks.succeed("second_run", "site.yml").recap
    assert set(recap) >= set(nodes)
    assert recap == dict.fromkeys(recap, QUIET)


def test_check_run_finds_nothing_to_do(nodes):
    recap = playbooks.succeed("check_run", "site.yml", "--check").recap
    assert set(recap) >= set(nodes)
    assert recap == dict.fromkeys(recap, QUIET)


def test_limit_keeps_slurm_conf_whole(controller, computes):
    files = "sha256sum /etc/slurm/slurm.conf /etc/slurm/nodes.conf /etc/slurm/partitions.conf"
    before = controller.output(files)
    recap = playbooks.succeed("limit", "site.yml", "--limit", computes[0].name).recap
    assert controller.name not in recap
    assert controller.output(files) == before
    assert computes[0].run("test -e /etc/slurm/slurm.conf").rc != 0
