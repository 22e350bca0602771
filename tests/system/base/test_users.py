import pytest

NO_PASSWORD = ("*", "!", "!!", "!*")


@pytest.fixture(scope="module")
def shared_file(login, user):
    path = login.run_as(user, "mktemp -p ~ shared.XXXXXX")
    login.run_as(user, f"echo hello > {path}")
    yield path
    login.run_as(user, f"rm -f {path}")


def test_users_have_the_same_ids_everywhere(nodes, cluster):
    command = f"id {' '.join(cluster.users)}"
    assert len({node.output(command) for node in nodes.values()}) == 1


def test_home_is_shared(nodes, user, shared_file):
    assert {node.run_as(user, f"cat {shared_file}") for node in nodes.values()} == {"hello"}


def test_home_of_another_is_closed(nodes, user, other_user, shared_file):
    for node in nodes.values():
        refused = node.try_as(other_user, f"cat {shared_file}")
        assert refused.rc != 0
        assert "Permission denied" in refused.stderr
        assert node.try_as(other_user, f"ls ~{user}").rc != 0


def test_user_may_not_become_root(nodes, user):
    for node in nodes.values():
        assert node.try_as(user, "sudo -n true").rc != 0
        assert node.try_as(user, "su -c true < /dev/null").rc != 0


def test_no_user_is_in_a_group_of_rights(nodes, cluster):
    for node in nodes.values():
        groups = node.output(f"for user in {' '.join(cluster.users)}; do id -nG $user; done").split()
        assert not {*groups} & {"root", "sudo", "wheel", "adm", "disk", "shadow", "docker"}


def test_no_user_has_a_password(nodes, cluster):
    for node in nodes.values():
        shadow = dict(line.split(":")[:2] for line in node.output("cat /etc/shadow").splitlines())
        assert {shadow[user] for user in cluster.users} <= set(NO_PASSWORD)


def test_user_may_not_read_shadow(nodes, user):
    for node in nodes.values():
        assert node.try_as(user, "cat /etc/shadow").rc != 0
