"""What dpkg lists beyond what is installed is parsed as it is, by the real program too."""

import subprocess

import pytest

from isthmus.support.modules import dpkg
from tests.support.fakes.dpkg import row, slurm


@pytest.mark.parametrize(
    ("output", "versions"),
    [
        ("", {}),
        (row("bash", "5.2-1"), {"bash": "5.2-1"}),
        (row("slurmd", "1:24.11.5-4+deb13u1"), {"slurmd": "1:24.11.5-4+deb13u1"}),
        (row("slurmd", "26.05.0~rc1-1~bpo13+1"), {"slurmd": "26.05.0~rc1-1~bpo13+1"}),
        (row("bash", "5.2-1", want="hold"), {"bash": "5.2-1"}),
        (row("gone", "1", want="deinstall", status="config-files"), {}),
        (row("gone", "", want="unknown", status="not-installed"), {}),
        *((row("half", "1", status=status), {}) for status in ("half-installed", "half-configured", "unpacked")),
        (row("libc6", "2.41-12") + row("libc6", "2.41-12", architecture="i386"), {"libc6": "2.41-12"}),
        (row("lib", "1", want="deinstall", status="config-files", architecture="i386") + row("lib", "2"), {"lib": "2"}),
        (row("bash", "5.2-1").replace("\n", "\r\n"), {"bash": "5.2-1"}),
        ("dpkg-query: no packages found matching never\n" + row("bash", "5.2-1"), {"bash": "5.2-1"}),
        ("Package: lib\nAuto-Installed: 1\n|||\nbash|5.2-1|installed\n", {}),
    ],
    ids=lambda value: value[:30].strip() if isinstance(value, str) else None,
)
def test_installed_packages_have_their_versions(output, versions):
    assert {name: package.version for name, package in dpkg.installed(output).items()} == versions


def test_packages_of_slurm_are_known_by_their_source():
    output = (
        slurm("slurmd", "24.11.5-4", want="hold")
        + slurm("libslurm42t64", "23.11.4-1")
        + slurm("libslurm-dev", "24.11.5-4")
        + slurm("slurmctld", "22.05.1-1", want="deinstall", status="config-files")
        + row("slurm-wlm-tools", "1")
        + row("munge", "0.5.16-1")
    )
    assert list(dpkg.of_slurm(output)) == ["slurmd", "libslurm42t64", "libslurm-dev"]
    assert list(dpkg.slurm_programs(output)) == ["slurmd", "libslurm-dev"]
    assert [name for name, package in dpkg.of_slurm(output).items() if package.held] == ["slurmd"]


def test_this_machines_dpkg_answers_the_question():
    asked = dpkg.question(["dpkg", "never-heard-of"])
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    (found,) = dpkg.rows(answer.stdout)
    plain = subprocess.run(["dpkg-query", "-W", "-f=${Version}", "dpkg"], capture_output=True, text=True, check=True)
    assert (found.name, found.version, found.source, found.status) == ("dpkg", plain.stdout, "dpkg", "installed")
    assert answer.returncode


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("", []),
        ("N: Unable to locate package slurmd\n", []),
        (
            "   slurmd | 1:26.05.5-1~x | http://mirror forky/main amd64 Packages\n",
            [("slurmd", "1:26.05.5-1~x")],
        ),
        ("slurm-client | 2 | a\nslurm-client | 1 | b\n", [("slurm-client", "2"), ("slurm-client", "1")]),
    ],
)
def test_offers_are_read_in_their_order(output, found):
    assert dpkg.offered(output) == found
