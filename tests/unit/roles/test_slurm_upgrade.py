"""The modules by which role slurm upgrades: what they decide before they touch anything."""

import gzip
import re
import tarfile
from types import SimpleNamespace

import pytest

from tests.support import ansible_modules
from tests.support.fakes.dpkg import row, slurm

MADISON = """\
slurm-client | 26.05.5-1 | http://mirror forky/main amd64 Packages
slurm-client | 24.11.5-4+deb13u1 | http://mirror trixie/main amd64 Packages
slurm-client | 24.11.5-4 | http://mirror trixie/main amd64 Packages
"""


def load(name):
    return ansible_modules.load(f"roles/slurm/library/{name}.py")


@pytest.mark.parametrize(
    ("wanted", "version"),
    [("26.05", "26.05.5-1"), ("24.11", "24.11.5-4+deb13u1"), ("24.11.5-4", "24.11.5-4+deb13u1"), ("25.11", "")],
)
def test_newest_version_that_fits_is_chosen(wanted, version):
    debs = load("slurm_debs")
    assert debs.choose(debs.offered(MADISON), wanted) == version


def test_packages_that_apt_would_remove_are_seen():
    reported = "Remv libslurm-perl [24.11.5-4]\nInst slurmd [24.11.5-4] (26.05.5-1 Debian [amd64])\n"
    assert load("slurm_debs").removed(reported) == ["libslurm-perl"]


def test_library_of_an_older_slurm_makes_no_host_old():
    reported = slurm("libslurm42t64", "24.11.5-4") + slurm("libslurm-dev", "26.05.5-1")
    assert list(load("slurm_debs").slurm_programs(reported)) == ["libslurm-dev"]


def test_files_are_found_by_the_names_that_apt_gives_them():
    assert load("slurm_debs").archive("slurmd", "1:26.05.5-1") == "slurmd_1%3a26.05.5-1_"


class Store:
    """A folder of packages whose mirror answers nothing, or everything."""

    def __init__(self, debs, folder, mirror):
        self.store = debs.Store(None, folder, folder.with_name("pmix"))
        self.asked = []
        self.store.run = self.run
        self.mirror = mirror

    def run(self, *command, cwd=None):
        self.asked.append(command)
        if "download" in command:
            if not self.mirror:
                raise self.store.keep.__globals__["DebError"]("404")
            (cwd / f"{command[-1].replace('=', '_')}_amd64.deb").touch()
        return self.mirror


def test_installed_packages_are_kept_once(tmp_path):
    debs = load("slurm_debs")
    bed = Store(debs, tmp_path, MADISON)
    for _ in range(2):
        bed.store.keep({"slurmd": "24.11.5-4"})
    assert [command[1] for command in bed.asked] == ["download"]
    assert (tmp_path / "24.11.5-4/slurmd_24.11.5-4_amd64.deb").exists()


def test_package_that_no_mirror_has_is_refused_with_its_place(tmp_path):
    debs = load("slurm_debs")
    with pytest.raises(debs.DebError, match=r"slurmd 24.11.5-4.*way back.*put its file into .*/24.11.5-4"):
        Store(debs, tmp_path, "").store.keep({"slurmd": "24.11.5-4"})


def test_version_that_mirrors_have_dropped_is_found_where_it_was_kept(tmp_path):
    debs = load("slurm_debs")
    (tmp_path / "26.05.5-1").mkdir()
    (tmp_path / "26.05.5-1/slurm-client_26.05.5-1_amd64.deb").touch()
    assert Store(debs, tmp_path, "").store.find("26.05") == "26.05.5-1"
    with pytest.raises(debs.DebError, match=r"no source of this host has Slurm 25\.11; correct"):
        Store(debs, tmp_path, "").store.find("25.11")


def test_version_for_which_apt_would_remove_something_is_refused(tmp_path):
    debs = load("slurm_debs")
    bed = Store(debs, tmp_path, MADISON + "Remv slurm-drmaa1 [1.1.4]\n")
    with pytest.raises(debs.DebError, match=r"apt would remove slurm-drmaa1 for Slurm 26\.05\.5-1; remove what needs"):
        bed.store.bring({"slurm-client": "24.11.5-4"}, "26.05.5-1")
    assert not [command for command in bed.asked if "--download-only" in command]


@pytest.fixture
def built(tmp_path):
    """The plugin mpi/pmix as the deployer puts it on a host; folder of packages beside it."""
    (tmp_path / "pmix").mkdir()
    (tmp_path / "pmix/26.05.5-1.deb").write_text("plugin")
    (tmp_path / "packages").mkdir()
    return tmp_path / "packages"


def test_plugin_is_tried_and_laid_beside_the_packages_that_it_is_for(built):
    bed = Store(load("slurm_debs"), built, MADISON)
    bed.store.bring({"slurm-client": "24.11.5-4"}, "26.05.5-1")
    installs = [command for command in bed.asked if "install" in command]
    assert [command[-1] for command in installs] == [str(built.with_name("pmix") / "26.05.5-1.deb")] * 2
    for _ in range(2):
        bed.store.join("26.05.5-1")
        bed.store.join("24.11.5-4")
    assert [str(path.relative_to(built)) for path in built.glob("*/*.deb")] == ["26.05.5-1/isthmus-slurm-pmix.deb"]
    assert bed.store.done == ["isthmus-slurm-pmix for 26.05.5-1"]


def test_plugin_that_was_built_again_takes_the_place_of_the_other(built):
    store = load("slurm_debs").Store(None, built, built.with_name("pmix"))
    store.join("26.05.5-1")
    (built.with_name("pmix") / "26.05.5-1.deb").write_text("another")
    store.join("26.05.5-1")
    assert (built / "26.05.5-1/isthmus-slurm-pmix.deb").read_text() == "another"


def test_slurm_for_which_no_plugin_is_built_is_refused(built):
    debs = load("slurm_debs")
    store = debs.Store(None, built, built.with_name("pmix"))
    store.require("26.05.5-1")
    with pytest.raises(debs.DebError, match=r"Slurm 26\.05\.6-1 has no plugin mpi/pmix.* for 26\.05\.5-1; set slurm_"):
        store.require("26.05.6-1")


@pytest.mark.parametrize(
    ("archive", "removed"),
    [(("slurmd", "24.11.5-4"), ["isthmus-slurm-pmix"]), (("isthmus-slurm-pmix", "26.05.5-1+pmix.ab"), [])],
)
def test_plugin_goes_with_the_slurm_that_it_is_for(archive, removed):
    switch = load("slurm_switch")
    assert switch.obsolete({"a.deb": archive}, row("isthmus-slurm-pmix", "26.05.5-1+pmix.ab")) == removed
    assert switch.obsolete({"a.deb": archive}, row("slurmd", "24.11.5-4")) == []


def test_disk_that_is_nearly_full_is_refused_before_anything_is_fetched(tmp_path, monkeypatch):
    debs = load("slurm_debs")
    monkeypatch.setattr(debs, "NEEDED_MIB", 1 << 40)
    folders = {"folder": str(tmp_path / "packages"), "pmix": str(tmp_path / "pmix")}
    result = ansible_modules.run(debs, version="26.05", **folders)
    assert result["failed"]
    assert result["msg"].startswith(f"{tmp_path}/packages has less than")
    assert result["msg"].endswith("MiB left; make room there")
    assert list((tmp_path / "packages").iterdir()) == []


@pytest.mark.parametrize(
    ("mariadb", "words"),
    [
        ("exit 1", "MariaDB does not answer: cannot connect; see `systemctl status mariadb` on this host"),
        ("echo 9999999999999999", "are needed for the dump; make room"),
        ("echo 0", ""),
    ],
)
def test_guard_asks_the_host(tmp_path, monkeypatch, mariadb, words):
    for name, text in {"sdiag": "exit 0", "mariadb": f"echo cannot connect >&2; {mariadb}"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    guard = load("slurm_guard")
    monkeypatch.setattr(guard, "LEAST_MIB", 0)
    result = ansible_modules.run(guard, database="acct", folder=str(tmp_path / "none/yet"))
    assert words in result.get("msg", "")
    assert bool(result.get("failed")) == bool(words)


@pytest.mark.parametrize(
    ("queue", "size", "free", "found"),
    [
        ("DBD Agent queue size: 3\n", 1 << 20, 1 << 30, []),
        ("DBD Agent queue size: 90000\n", 1 << 20, 1 << 30, ["90000 records for slurmdbd"]),
        ("", 1 << 30, 1 << 30, ["1024 MiB left, and 3072 are needed"]),
        ("", 0, 1 << 20, ["1 MiB left, and 200 are needed"]),
    ],
)
def test_guard_names_what_stands_in_the_way(queue, size, free, found):
    problems = load("slurm_guard").problems(queue, size, free, "/var")
    assert len(problems) == len(found)
    assert all(word in problem for word, problem in zip(found, problems, strict=True))


def test_kept_folder_can_be_read_back(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/job_state").write_text("jobs")
    load("slurm_before").pack(tmp_path / "state", tmp_path / "state.tar.gz")
    with tarfile.open(tmp_path / "state.tar.gz") as archive:
        assert archive.extractfile("./job_state").read() == b"jobs"


@pytest.mark.parametrize(("text", "whole"), [("INSERT;\n-- Dump completed on 2026\n", True), ("INSERT;\n", False)])
def test_dump_is_kept_when_it_is_whole(tmp_path, text, whole):
    before = load("slurm_before")

    def run(command):
        (tmp_path / "accounting.sql.part").write_text(text)
        assert f"--result-file={tmp_path}/accounting.sql.part" in command
        return 0, "", ""

    if whole:
        before.dump(run, "acct", tmp_path / "accounting.sql.gz")
        assert gzip.decompress((tmp_path / "accounting.sql.gz").read_bytes()).decode() == text
    else:
        with pytest.raises(before.KeepError):
            before.dump(run, "acct", tmp_path / "accounting.sql.gz")
    assert [path.name for path in tmp_path.glob("accounting*")] == (["accounting.sql.gz"] if whole else [])


def test_packages_start_no_daemon_and_another_policy_comes_back(tmp_path):
    switch, policy = load("slurm_switch"), tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    for _ in range(2):
        with switch.no_daemons(policy):
            assert policy.read_text() == switch.NO_DAEMON
        assert policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_only_other_versions_are_installed_and_only_loose_ones_held():
    switch = load("slurm_switch")
    reported = slurm("slurmd", "24.11.5-4", want="hold") + slurm("sackd", "26.05.5-1") + row("libhwloc15", "2.15")
    archives = {"a.deb": ("slurmd", "26.05.5-1"), "b.deb": ("libhwloc15", "2.15"), "c.deb": ("new", "1")}
    assert switch.lacking(archives, reported) == ["a.deb", "c.deb"]
    assert switch.loose(reported) == ["sackd"]


def test_daemon_that_stands_still_is_not_current(tmp_path):
    daemons = load("daemons_current")
    assert not daemons.is_current(tmp_path, "slurmd")
    (tmp_path / "7").mkdir()
    (tmp_path / "7/exe").symlink_to("/usr/sbin/slurmd-wlm")
    assert daemons.is_current(tmp_path, "slurmd")
    (tmp_path / "8").mkdir()
    (tmp_path / "8/exe").symlink_to("/usr/sbin/slurmd (deleted)")
    assert not daemons.is_current(tmp_path, "slurmd")


@pytest.mark.parametrize(
    ("log", "started"),
    [
        ('[2026] adding column exclusive after env_hash_inx in table "upg_job_table"\n', False),
        ("[2026] slurmdbd version 26.05.5 started\n", True),
        ("slurmdbd: slurmdbd version 26.05.5 started\nslurmdbd: more\n", True),
    ],
)
def test_tables_are_done_when_slurmdbd_says_that_it_started(log, started):
    assert load("slurm_convert").has_started(log) is started


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (124, "", "`slurmdbd -u` had no answer after 60 s"),
        (137, "", "`slurmdbd -u` had no answer after 60 s"),
        (255, "no such table\n", "`slurmdbd -u` cannot read the database: no such table"),
    ],
)
def test_database_that_slurmdbd_cannot_ask_is_no_reason_to_convert(tmp_path, code, error, words):
    convert = load("slurm_convert")
    module = SimpleNamespace(
        params={"log": tmp_path / "log", "record": tmp_path / "record"}, run_command=lambda _: (code, "", error)
    )
    with pytest.raises(convert.ConversionError, match=re.escape(words)):
        convert.Conversion(module).state()
