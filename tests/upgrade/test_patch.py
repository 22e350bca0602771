"""Newer packages of the distribution while a job runs; Slurm's stay, for they are held."""

from tests.support.clusters import jobs, playbooks

SLURM = "dpkg-query --show --showformat='${Package} ${Version}\\n' 'slurm*' 'libslurm*'"
# What a mirror has newer, but for what is held.
LEFT = "apt-get --simulate dist-upgrade | grep ^Inst"


def test_packages_are_new_slurm_is_the_same_and_the_job_goes_on(login, controller, user, nodes):
    before = {name: node.output(SLURM) for name, node in nodes.items()}
    with jobs.running(login, controller, user, "--mem=10") as job:
        patched = playbooks.succeed("patch", "playbooks/patch.yml", "-e", '{"patch_batch": [1, "10%"]}')
        shown = jobs.fields(controller.output(f"scontrol show job {job}"))
    assert set(patched.recap) == set(nodes)
    assert (shown["JobState"], shown["Restarts"]) == ("RUNNING", "0")
    assert {name: node.output(SLURM) for name, node in nodes.items()} == before
    assert not [name for name, node in nodes.items() if node.run(LEFT).stdout]


def test_another_run_changes_nothing():
    assert not playbooks.succeed("patch_again", "playbooks/patch.yml").changed
