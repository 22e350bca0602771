from isthmus.filters.bundle import bundle_index, bundle_shares

HOSTVARS = {
    "ctl": {
        "__bundle_installed": {
            "stdout_lines": [
                "installed bash=5.2-1",
                "config-files old=1",
                "installed slurmctld=24",
                "installed apptainer=1+setuid.ab",
            ]
        }
    },
    "c1": {"__bundle_installed": {"stdout_lines": ["installed bash=5.2-1", "installed slurmd=24"]}},
    "c2": {"__bundle_installed": {"stdout_lines": ["installed bash=5.2-2", "installed slurmd=24"]}},
}


def test_each_package_of_a_repository_comes_from_one_host():
    shares = {host: bundle_shares(["ctl", "c1", "c2"], HOSTVARS, host) for host in HOSTVARS}
    assert shares == {"ctl": ["bash=5.2-1", "slurmctld=24"], "c1": ["slurmd=24"], "c2": ["bash=5.2-2"]}


def test_index_is_what_a_mirror_has():
    programs = {"etcd": {"version": "3.6.14", "sha256": "ab", "path": "/blob", "way": "cache"}}
    row = {"name": "etcd", "version": "3.6.14", "arch": "arm64", "file": "etcd", "sha256": "ab"}
    assert bundle_index(programs, "arm64") == {"schema": 1, "programs": [row]}
