from isthmus.filters.bundle import bundle_index, bundle_shares
from tests.support.fakes.dpkg import row

SIMULATED = """\
gcc is already the newest version (4:14.2.0-1).
The following NEW packages will be installed:
  libjson-c-dev
Inst libjson-c-dev (0.18+ds-1 Debian:13.7/stable [amd64])
Inst libc6 [2.40-1] (2.41-12 Debian:13.7/stable [amd64])
Conf libjson-c-dev (0.18+ds-1 Debian:13.7/stable [amd64])
"""


def node(*lines):
    return {"__bundle_installed": {"stdout_lines": "".join(lines).splitlines()}, "__bundle_more": {"skipped": True}}


HOSTVARS = {
    "ctl": node(
        row("bash", "5.2-1"),
        row("old", status="config-files"),
        row("slurmctld", "24"),
        row("apptainer", "1+setuid.ab"),
        row("isthmus-slurm-pmix", "26.05.5-1+pmix.ab"),
    ),
    "c1": node(row("bash", "5.2-1"), row("slurmd", "24")),
    "c2": node(row("bash", "5.2-2"), row("slurmd", "24")),
}


def test_each_package_of_a_repository_comes_from_one_host():
    shares = {host: bundle_shares(["ctl", "c1", "c2"], HOSTVARS, host) for host in HOSTVARS}
    assert shares == {"ctl": ["bash=5.2-1", "slurmctld=24"], "c1": ["slurmd=24"], "c2": ["bash=5.2-2"]}


def test_what_a_build_needs_besides_comes_too():
    asked = {"ctl": HOSTVARS["ctl"] | {"__bundle_more": {"stdout_lines": SIMULATED.splitlines()}}}
    assert bundle_shares(["ctl"], asked, "ctl") == [
        "bash=5.2-1",
        "libc6=2.41-12",
        "libjson-c-dev=0.18+ds-1",
        "slurmctld=24",
    ]


def test_index_is_what_a_mirror_has():
    programs = {"etcd": {"version": "3.6.14", "sha256": "ab", "path": "/blob", "way": "cache"}}
    row = {"name": "etcd", "version": "3.6.14", "arch": "arm64", "file": "etcd", "sha256": "ab"}
    assert bundle_index(programs, "arm64") == {"schema": 1, "programs": [row]}
