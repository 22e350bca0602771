"""Ansible itself reads inventories; the playbook validate is run for real."""

import subprocess

import pytest

from tests.support.clusters.cluster import BIN, ROOT

HOSTS = """\
controller: {hosts: {ctl: {ansible_host: 192.0.2.10}}}
compute: {hosts: {c1: {ansible_host: 192.0.2.21}}}
"""
# What is put into the inventory: file -> text, and what the message names.
BAD = {
    "no_controller": ({"hosts.yml": "compute: {hosts: {c1: {ansible_host: 192.0.2.21}}}\n"}, "controller"),
    "two_controllers": ({"more.yml": "controller: {hosts: {ctl2: {ansible_host: 192.0.2.11}}}\n"}, "controller"),
    "no_compute": ({"hosts.yml": "controller: {hosts: {ctl: {ansible_host: 192.0.2.10}}}\n"}, "compute"),
    "same_address": ({"more.yml": "compute: {hosts: {c2: {ansible_host: 192.0.2.21}}}\n"}, "192.0.2.21"),
    "unknown_group": ({"more.yml": "computes: {hosts: {c1: }}\n"}, "computes"),
    "clear_password": (
        {"group_vars/all/users.yml": "base_users: [{name: ada, uid: 2001, password_hash: secret}]\n"},
        "password",
    ),
    "same_uid": (
        {"group_vars/all/users.yml": "base_users: [{name: ada, uid: 2001}, {name: ben, uid: 2001}]\n"},
        "2001",
    ),
}


@pytest.fixture
def inventory(tmp_path):
    """A right inventory, to be broken."""
    common = ROOT / "inventories/common"
    (tmp_path / "group_vars/all").mkdir(parents=True)
    (tmp_path / "groups.yml").symlink_to(common / "groups.yml")
    (tmp_path / "group_vars/all/00_common").symlink_to(common / "group_vars/all")
    (tmp_path / "hosts.yml").write_text(HOSTS)
    return tmp_path


def validate(inventory, *arguments):
    command = [BIN / "ansible-playbook", "-i", inventory, "playbooks/validate.yml", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_right_inventory_has_no_problem(inventory):
    result = validate(inventory)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("kind", BAD)
def test_bad_inventory_is_refused_with_its_name(inventory, kind):
    files, named = BAD[kind]
    for name, text in files.items():
        (inventory / name).write_text(text)
    result = validate(inventory)
    assert result.returncode != 0
    assert named in result.stdout.split("Name each problem")[1]


def test_limit_hides_no_problem(inventory):
    (inventory / "more.yml").write_text("compute: {hosts: {c2: {ansible_host: 192.0.2.21}}}\n")
    assert validate(inventory, "--limit", "c1").returncode != 0


@pytest.mark.parametrize("text", ["compute: [\n", "compute:\n\t hosts: c1\n"], ids=["open", "tab"])
def test_unparsed_inventory_is_refused(inventory, text):
    (inventory / "hosts.yml").write_text(text)
    result = validate(inventory)
    assert result.returncode != 0
    assert "Failed to parse" in result.stderr or "failed to parse" in result.stderr
