"""Each kind of bad input, on a small site that has no problem without it."""

import re

import pytest
import yaml
from jinja2 import StrictUndefined

from isthmus.filters.validate.check import cluster_problems, cluster_role_specs

LIMITS = ("slurm_user_jobs_max",)
OPTIONS = {
    "base": ("base_users", "base_address"),
    "slurm": (
        "slurm_partitions",
        "slurm_node",
        "slurm_conf_extra",
        "slurm_gres_conf",
        "slurm_qos",
        "slurm_user_jobs_max",
        "slurm_health_program",
        "slurm_health_interval_s",
    ),
    "provider_local": (),
    "cluster": ("cluster_name",),
}
SPECS = {
    role: {"argument_specs": {"main": {"options": {name: {} for name in names}}}} for role, names in OPTIONS.items()
}
HASH = "$6$saltsalt$" + "x" * 86
HOSTS = {"ctl": "10.0.0.1", "c1": "10.0.0.2", "c2": "10.0.0.3"}


def problems(groups=(), shared=(), c1=(), files=()):
    groups = {
        "all": list(HOSTS),
        "ungrouped": [],
        "controller": ["ctl"],
        "compute": ["c1", "c2"],
        "slurm": list(HOSTS),
        **dict(groups),
    }
    hostvars = {
        host: {"cluster_name": "isthmus", "base_address": HOSTS.get(host, "10.0.0.99"), **dict(shared)}
        for host in groups["all"]
    }
    hostvars.get("c1", {}).update(c1)
    return cluster_problems(hostvars, groups, SPECS, files)


def partition(**settings):
    return {"slurm_partitions": [{"name": "batch", "nodes": ["compute"], **settings}]}


def user(**settings):
    return {"base_users": [{"name": "alice", "uid": 2001, **settings}]}


def test_right_site_has_no_problem():
    shared = {**partition(max_time="1-00:00:00", options={"DefMemPerCPU": 256}), **user(password_hash=HASH)}
    assert problems(shared=shared, c1={"slurm_node": {"cpus": 4, "memory_mib": 256}}) == []


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"all": []}, "the inventory has no hosts; pass one with -i"),
        ({"comptue": ["c1"]}, "unknown group: 'comptue'; did you mean 'compute'?"),
        ({"controller": []}, "group controller has no host; put the host of Slurm's controller"),
        ({"controller": ["ctl", "c1"]}, "has 2 hosts: ctl, c1; keep one; there is no backup controller yet"),
        ({"compute": []}, "group compute has no host; put at least one"),
        ({"all": [*HOSTS, "c1.example.org"]}, "hosts c1 and c1.example.org share the host name c1; rename one"),
        ({"all": [*HOSTS, "c_3"]}, "'c_3' is no host name; use letters"),
    ],
)
def test_wrong_groups_are_refused(groups, message):
    assert message in "\n".join(problems(groups))


def test_groups_of_site_and_partition_are_known():
    shared = {"base_site_groups": ["rack1"], "slurm_partitions": [{"name": "gpu", "nodes": ["gpus"]}]}
    assert problems({"rack1": ["c1"], "gpus": ["c2"], "provider_local": []}, shared) == []


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ({"slurm_partitons": []}, "unknown variable: 'slurm_partitons'; did you mean 'slurm_partitions'?"),
        ({"provider_local_suite": "sid"}, "unknown variable: 'provider_local_suite'; it is image_suite now"),
        ({"cluster_name": "Two words"}, "cluster_name is 'Two words'; use at most 63 of a-z"),
    ],
)
def test_wrong_variables_are_refused(shared, message):
    assert message in "\n".join(problems(shared=shared))


@pytest.mark.parametrize(
    ("c1", "message"),
    [
        ({"base_address": "10.0.0.1"}, "hosts ctl and c1 share the address 10.0.0.1; give each its own"),
        ({"base_address": "c1.example.org"}, "host c1 has base_address 'c1.example.org', no IPv4 address; set"),
        ({"base_address": None}, "host c1 has no base_address; set base_address (or ansible_host)"),
        ({"slurm_node": {"cpus": 0, "memory_mib": 1}}, "host c1: slurm_node.cpus is 0; give a whole number"),
    ],
)
def test_wrong_host_is_refused(c1, message):
    assert message in "\n".join(problems(c1=c1))


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        (user(name="Alice"), "user name 'Alice' is not POSIX; use at most 32"),
        (user(name="slurm"), "user name 'slurm' is the system's; choose another"),
        (user(uid=999), "user alice has uid 999; give a whole number of at least 1000"),
        (user(uid=None), "user alice has uid None; give a whole number"),
        (user(**{"password_hash": "secret"}), "password_hash of user alice is no hash; set password_hash to"),
        (
            {"base_admin_groups": ["cluster-users"]},
            "all users are in cluster-users, which is in base_admin_groups; take",
        ),
        ({"base_admin_groups": ["a b"]}, "'a b' in base_admin_groups is no group; give names as"),
        (user(ssh_keys=["file:///secret"]), "ssh_keys of user alice has a line that is no public key; give what"),
        (user(**{"password": "secret"}), "user alice has a password in clear text; remove it"),
        ({"base_users": 2 * user()["base_users"]}, "users alice and alice share the name alice; give each"),
        (
            {"base_users": [{"name": "bob", "uid": 2001}, *user()["base_users"]]},
            "users bob and alice share the uid 2001; give each uid once",
        ),
    ],
)
def test_wrong_user_is_refused_without_telling_secrets(shared, message):
    text = "\n".join(problems(shared=shared))
    assert message in text
    assert "secret" not in text


def test_key_with_options_is_a_key():
    keys = ['# mine\nfrom="10.0.0.0/8" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== alice\n', "ssh-rsa AAAAB3NzaC1yc2E="]
    assert problems(shared=user(ssh_keys=keys)) == []


@pytest.mark.parametrize("given", ["$y$j9T$" + "a" * 22 + "$" + "b" * 43, "!", ""])
def test_hashes_and_locks_are_passwords(given):
    assert problems(shared=user(password_hash=given)) == []


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        (partition(nodes=["c7"]), "unknown node or group in partition batch: 'c7'"),
        (partition(nodes=["comptue"]), "'comptue'; did you mean 'compute'?"),
        (partition(nodes=["ctl"]), "ctl in partition batch is no compute node; put it into the group"),
        (partition(nodes=["c[1-"]), "nodes of a partition: "),
        (partition(max_time="1 day"), "max_time of partition batch is no time: '1 day'; write min"),
        (partition(max_time=3600), "max_time of partition batch is not text but 3600; put the time in quotes"),
        (partition(options={"DefaultTime": "x"}), "DefaultTime of partition batch is no time: 'x'"),
        ({"slurm_partitions": 2 * partition()["slurm_partitions"]}, "partition 'batch' exists twice"),
        ({"slurm_qos": [{"name": "q", "limits": {"MaxWall": "1h"}}]}, "MaxWall of slurm_qos, q is no time: '1h'"),
        (partition(options={"DefMemPerNode": 257}), "DefMemPerNode of partition batch is 257 MiB, but node c1 has 256"),
        ({"slurm_gres_conf": [{"Name": ""}]}, "Name has no value"),
        ({"slurm_user_jobs_max": -1}, "slurm_user_jobs_max is -1; give a whole number, or 0"),
        ({"slurm_health_program": "nhc -v"}, "slurm_health_program is 'nhc -v'; give its absolute path"),
        ({"slurm_health_interval_s": 10}, "slurm_health_interval_s is 10; give seconds from 60"),
        ({"slurm_gres_conf": ["Name=gpu"]}, "slurm_gres_conf[0] is text; write a dict"),
        ({"slurm_conf_extra": {"defmempercpu": 257}}, "is 257 MiB, but node c1 has 256; lower it, or raise"),
    ],
)
def test_wrong_slurm_is_refused(shared, message):
    assert message in "\n".join(problems(shared=shared, c1={"slurm_node": {"cpus": 4, "memory_mib": 256}}))


def test_generic_resource_without_a_count_is_refused_where_nothing_else_reports():
    host = {"slurm_node": {"gres": ["gpu"]}}
    assert "host c1: slurm_node.gres has 'gpu'; write name:count" in "\n".join(problems(c1=host))
    assert problems(shared={"slurm_gres_conf": [{"AutoDetect": "nvml"}]}, c1=host) == []


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        (user(uid="2001"), "base_users[0].uid is text; write a whole number"),
        (user(uid=True), "base_users[0].uid is true or false; write a whole number"),
        ({"base_users": [{"uid": 2001}]}, "base_users[0].name is missing; write text"),
        ({"base_users": {}}, "base_users is a dict; write a list"),
        (partition(nodes="compute"), "slurm_partitions[0].nodes is text; write a list"),
        ({"slurm_node": 4}, "slurm_node of host c1 is a whole number; write a dict"),
    ],
)
def test_wrong_shape_is_refused(shared, message):
    assert message in "\n".join(problems(shared=shared))


def test_problem_names_file_and_line(tmp_path):
    users = [{"name": "bob", "uid": 2001}, {"name": "alice", "uid": 2001}]
    file = tmp_path / "group_vars" / "all.yml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump({"base_users": users}, sort_keys=True))
    (tmp_path / "hosts.yml").write_text("all: {}\n")
    for source in (tmp_path, tmp_path / "hosts.yml"):
        (problem,) = problems(shared={"base_users": users}, files=[str(source)])
        assert problem.startswith(f"{file}:5: users bob and alice share the uid 2001;")


@pytest.mark.parametrize("path", ["group_vars/comptue.yml", "group_vars/comptue/slurm.yml", "host_vars/c7"])
def test_variables_of_nobody_are_refused(path, tmp_path):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text("slurm_node: {}\n")
    (problem,) = problems(files=[str(tmp_path)])
    assert problem.startswith(f"{file}: unknown group or host with a file of variables: ")


def test_passwords_in_files_are_refused_unless_vaulted(tmp_path):
    text = "a: {password: x}\nb: {password: !vault y}\nc: {password: '{{ z }}'}\n"
    (tmp_path / "vars.yml").write_text(text)
    (problem,) = problems(files=[str(tmp_path)])
    assert re.search(r"vars\.yml:1: a password in clear text; remove it", problem)


def test_variable_read_by_another_is_known(tmp_path):
    (tmp_path / "hosts.yml").write_text("base_rack: 1\nansible_host: '10.0.{{ base_rack }}.1'\n")
    assert problems(shared={"base_rack": 1}, files=[str(tmp_path)]) == []


def test_variable_documented_in_common_is_known(tmp_path):
    folder = tmp_path / "inventories" / "common"
    folder.mkdir(parents=True)
    (folder / "base.yml").write_text("# base_motd: hello\nbase_shown: 1\n")
    assert problems(shared={"base_motd": 1, "base_shown": 2}, files=[str(folder)]) == []


def test_value_not_known_yet_is_no_problem():
    users = [{"name": "alice", "uid": 2001, "ssh_keys": [StrictUndefined(name="later")]}]
    assert problems(shared={"base_users": users, "slurm_conf_extra": StrictUndefined(name="facts")}) == []


def test_role_specs_are_read_from_folder(tmp_path):
    meta = tmp_path / "base" / "meta"
    meta.mkdir(parents=True)
    (meta / "argument_specs.yml").write_text("argument_specs: {main: {options: {base_x: {type: str}}}}")
    assert cluster_role_specs(str(tmp_path)) == {
        "base": {"argument_specs": {"main": {"options": {"base_x": {"type": "str"}}}}}
    }
