"""Where users may not be: the hosts that the whole cluster depends on."""

import shlex

import pytest

pytestmark = pytest.mark.attack("S13")
# As a user does it from the login node; the tests' own connection would fail with 255, this one ends with 1.
SSH = "-o BatchMode=yes -o ConnectTimeout=20"
WAYS = {
    "shell": f"ssh {SSH} HOST id",
    "no-command": f"timeout 9 ssh {SSH} -N HOST; test $? -eq 124",
    "terminal": f"ssh {SSH} -tt HOST id",
    "forward": f"timeout 20 ssh {SSH} -W 127.0.0.1:6819 HOST < /dev/null",
    "sftp": f"echo pwd | sftp -q {SSH} -b - HOST",
    "scp": f"scp -q {SSH} /etc/hostname HOST:",
    "as-another": f"ssh {SSH} VICTIM@HOST id",
    "as-root": f"ssh {SSH} root@HOST id",
}


@pytest.fixture(scope="module")
def heads(cluster):
    """The controller and hosts of etcd that are nothing else; skips where users submit there."""
    if not cluster.part("login"):
        pytest.skip("the site has no login node: users submit on the controller")
    entered = {node.name for group in ("login", "compute") for node in cluster.part(group)}
    found = {node.name: node for group in ("controller", "etcd") for node in cluster.part(group)}
    return [node for name, node in found.items() if name not in entered]


@pytest.mark.parametrize("way", WAYS)
def test_login_to_the_controller(heads, login, attacker, victim, way):
    """Log in by SSH to the controller or a host of etcd, in whatever form."""
    for node in heads:
        command = WAYS[way].replace("HOST", node.name).replace("VICTIM", victim)
        refused = login.try_as(attacker, f"({command}) || exit 1")
        assert refused.rc == 1, refused.stdout
        assert "uid=" not in refused.stdout
        if way == "shell":
            assert f"{attacker} may not log in to {node.name}, which is for admins alone" in refused.stderr
            assert f"Log in to {login.name}" in refused.stderr


def test_command_for_the_controller_by_slurm(heads, login, attacker):
    """Have Slurm start a command on the controller: srun, sbatch and sattach name it."""
    for node in heads:
        for command in (f"srun --nodelist={node.name} id", f"sbatch --nodelist={node.name} --wrap id"):
            refused = login.try_as(attacker, f"timeout 20 {command} || exit 1")
            assert refused.rc == 1, refused.stdout


def test_account_of_an_admin(heads):
    """Get in as an admin must: root, and a member of base_admin_groups, who is let in."""
    node = heads[0]
    name = "isthmus-admin"
    inside = shlex.quote(
        "ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && cp .ssh/id_ed25519.pub .ssh/authorized_keys && "
        f"ssh {SSH} -o StrictHostKeyChecking=no localhost id -un"
    )
    enter = f"su - {name} -c 'mkdir -m 700 .ssh'; su - {name} -c {inside}"
    node.run(f"userdel -rf {name}")
    try:
        node.output(f"useradd --create-home --home-dir /var/lib/{name} --password '*' {name}")
        refused = node.run(f"({enter}) || exit 1")
        assert (refused.rc, "is for admins alone" in refused.stderr) == (1, True)
        assert node.output(f"usermod --append --groups sudo {name}; {enter.replace('ssh-keygen', 'true')}") == name
    finally:
        node.run(f"userdel -rf {name}")
