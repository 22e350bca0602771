"""The node image's recipe."""

import os
import subprocess

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.images import image

TARGETS = """bookworm http://mirror.example/debian/ main
bookworm http://mirror.example/debian/ contrib
bookworm-updates http://mirror.example/debian/ main
bookworm-security http://mirror.example/security/ main
nodistro http://other.example/ main
"""
DUMP = """Acquire::AllowInsecureRepositories "0";
Acquire::http::Proxy "http://proxy.example:3142";
Acquire::Check-Valid-Until "false";
Acquire::IndexTargets::deb::Packages::Optional "0";
"""
RECIPE = {
    "suite": "trixie",
    "packages": ["systemd", "python3"],
    "sources": ["deb http://mirror.example/debian/ trixie main"],
    "options": ['Acquire::Check-Valid-Until "false";'],
}


def test_apt_sources_follow_the_deployers_mirrors():
    assert image.local_apt_sources(TARGETS, "trixie") == [
        "deb http://mirror.example/debian/ trixie main",
        "deb http://mirror.example/security/ trixie-security main",
        "deb http://mirror.example/debian/ trixie-updates main",
    ]


@pytest.mark.parametrize("targets", ["", "noble http://mirror.example/ubuntu main\n"])
def test_apt_sources_without_a_debian_mirror_are_refused(targets):
    with pytest.raises(InputError, match=r"names no Debian mirror; run on Debian"):
        image.local_apt_sources(targets, "trixie")


def test_apt_options_keep_proxies_and_date_checks():
    assert image.local_apt_options(DUMP) == [
        'Acquire::http::Proxy "http://proxy.example:3142";',
        'Acquire::Check-Valid-Until "false";',
    ]


def test_image_key_changes_with_the_recipe():
    other = {**RECIPE, "packages": ["systemd"]}
    assert image.local_image_key(RECIPE) == image.local_image_key(dict(reversed(RECIPE.items())))
    assert image.local_image_key(RECIPE) != image.local_image_key(other)


def test_bootstrap_command_names_packages_and_sources():
    command = image.local_bootstrap_command(RECIPE, "/cache/node.tar")
    assert "--include=systemd,python3" in command
    assert command[-3:] == ["trixie", "/cache/node.tar.part", *RECIPE["sources"]]
    assert not any(word.startswith("--setup-hook") for word in command)


def test_last_step_gets_its_arguments():
    command = image.local_bootstrap_command(RECIPE, "/my cache/node.tar", ["/cache/wheels", "/tree/lock"])
    assert "--customize-hook='/my cache/node.tar.customize' \"$1\" /cache/wheels /tree/lock" in command


def test_image_key_changes_with_the_lock_and_the_last_step():
    keys = {
        image.local_image_key({**RECIPE, "venv": {"lock": lock}, "customize": last}) for lock in "ab" for last in "cd"
    }
    assert len(keys) == 4


ROLE_VARIABLES = """
_slurm_packages: "{{ a template }}"
_slurm_packages_of:
  all: {when: true, names: [munge]}
  compute: {when: "{{ x }}", names: [slurmd, munge]}
_slurm_other: [no-package]
"""


def test_packages_of_roles_are_of_every_kind_of_node():
    base = "_base_packages_always: [python3-venv]\n_base_packages: '{{ template }}'"
    assert image.image_packages({"slurm": ROLE_VARIABLES, "base": base}) == ["munge", "python3-venv", "slurmd"]


@pytest.mark.parametrize("text", ["_slurm_packages: '{{ a template }}'", "_other_packages: [a]"])
def test_role_without_a_list_of_packages_is_refused(text):
    with pytest.raises(InputError, match="role slurm names no packages; list them as _slurm_packages"):
        image.image_packages({"slurm": text})


def test_setup_script_is_for_mmdebstrap():
    command = image.local_bootstrap_command({**RECIPE, "setup": "exit 0"}, "/cache/node.tar")
    assert "--setup-hook=exit 0" in command[command.index("mmdebstrap") :]


# Says that it was called, and takes its time to write what it is given.
BOOTSTRAP = """#!/bin/sh
echo called >>"$LOG"
for word; do case $word in *.part) part=$word ;; esac; done
: >"$part"
sleep 0.3
echo whole >"$part"
exit "${STATUS:-0}"
"""


def bootstraps(tmp_path, count, **variables):
    """Run the command several times at once, with a mmdebstrap that is none; return what is there afterwards."""
    program = tmp_path / "mmdebstrap"
    program.write_text(BOOTSTRAP)
    program.chmod(0o755)
    command = image.local_bootstrap_command(RECIPE, str(tmp_path / "node.tar"))
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log"), **variables}
    runs = [subprocess.Popen(command, env=env) for _ in range(count)]
    ends = [run.wait(60) for run in runs]
    tar = tmp_path / "node.tar"
    return ends, tar.read_text() if tar.exists() else None, (tmp_path / "log").read_text().count("called")


def test_two_runs_at_once_make_one_whole_image(tmp_path):
    assert bootstraps(tmp_path, 3) == ([0, 0, 0], "whole\n", 1)


def test_failed_bootstrap_leaves_no_image(tmp_path):
    assert bootstraps(tmp_path, 1, STATUS="3") == ([3], None, 1)
    assert bootstraps(tmp_path, 1)[:2] == ([0], "whole\n")
