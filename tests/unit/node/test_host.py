import json

import pytest

from isthmus.clients.process import Finished, ProcessError
from isthmus.node.errors import JoinError
from isthmus.node.files import Tree
from isthmus.node.host import Host
from isthmus.node.manifest import When
from tests.support.fakes.dpkg import row
from tests.support.fakes.join_controller import Commands

UNIT = {"name": "isthmus-networkd", "files": ["/etc/a"]}


def host(root, **answers):
    return Host(Tree(root), Commands(**answers))


def test_container_is_no_machine(tmp_path):
    assert host(tmp_path).kinds() == {When.UNRESOLVED}
    assert host(tmp_path, **{"systemd-detect-virt": "none"}).kinds() == {When.UNRESOLVED, When.MACHINE}


@pytest.mark.parametrize(
    ("target", "active", "resolver"),
    [
        ("/run/systemd/resolve/stub-resolv.conf", True, "systemd-resolved"),
        ("/run/systemd/resolve/stub-resolv.conf", False, "resolv.conf"),
        ("/run/NetworkManager/resolv.conf", True, "resolv.conf"),
        ("", True, "resolv.conf"),
    ],
)
def test_resolver_is_what_role_network_takes(tmp_path, target, active, resolver):
    (tmp_path / "etc").mkdir()
    if target:
        (tmp_path / "etc/resolv.conf").symlink_to(target)

    def run(words, **_):
        if not active:
            raise ProcessError(" ".join(words), 3, "inactive")
        return Finished("active\n", "")

    assert Host(Tree(tmp_path), run).resolver() == resolver


def test_addresses_are_those_of_all_links(tmp_path):
    links = [
        {"addr_info": [{"local": "127.0.0.1"}]},
        {},
        {"addr_info": [{"local": "192.0.2.3"}, {"local": "192.0.2.4"}]},
    ]
    assert host(tmp_path, ip=json.dumps(links)).addresses() == {"127.0.0.1", "192.0.2.3", "192.0.2.4"}


def test_package_that_is_only_configured_is_not_installed(tmp_path):
    reported = row("munge", "0.5") + row("slurmd", "24.11", status="config-files")
    assert host(tmp_path, **{"dpkg-query": reported}).packages(["munge", "slurmd"]) == {"munge": "0.5"}


def test_files_count_when_they_are_followed(tmp_path):
    followed = host(tmp_path, **{"systemd-tmpfiles": "", "sysctl": "", "update-ca-certificates": ""})
    followed.follow(
        ["/etc/a", "/etc/sysctl.d/a.conf", "/usr/local/share/ca-certificates/a.crt", "/etc/tmpfiles.d/b.conf"]
    )
    assert followed._run.ran == [
        "sysctl --quiet --load /etc/sysctl.d/a.conf",
        "systemd-tmpfiles --create /etc/tmpfiles.d/b.conf",
        "update-ca-certificates",
    ]


def test_unit_is_started_once_and_again_on_newer_files(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/a").write_text("1")
    one = host(tmp_path)
    assert one.run_unit(UNIT, check=True) == ["isthmus-networkd started"]
    assert one.run_unit(UNIT, check=False) == ["isthmus-networkd started"]
    assert one.run_unit(UNIT, check=False) == []
    one._run.began["isthmus-networkd"] -= 60_000_000
    (tmp_path / "etc/a").write_text("2")
    assert one.run_unit(UNIT, check=False) == ["isthmus-networkd restarted"]


def test_unit_that_is_not_there_is_refused_with_the_remedy(tmp_path):
    shown = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\nExecMainStartTimestampMonotonic=0\n"
    one = Host(Tree(tmp_path), lambda words, **_: Finished(shown, ""))
    with pytest.raises(JoinError, match="is not-found; make this node from the image"):
        one.run_unit(UNIT, check=False)


def test_mount_is_written_once(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/fstab").write_text("UUID=1 / ext4 defaults 0 1\nold:/h /home nfs rw 0 0\n")
    entry = {"path": "/home", "source": "filer:/h", "type": "nfs", "options": "rw,hard"}
    one = host(tmp_path, mount="", findmnt="")
    assert one.mount(entry, check=False)
    assert (tmp_path / "etc/fstab").read_text() == "UUID=1 / ext4 defaults 0 1\nfiler:/h /home nfs rw,hard 0 0\n"
    assert not host(tmp_path, findmnt="/home filer:/h").mount(entry, check=False)
