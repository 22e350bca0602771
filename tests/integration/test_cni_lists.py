"""A list of CNI plugins is root's, like all that leads to it; who could change it would be root on every node."""

import json
import os

import pytest

from isthmus.clients.cni.lists import AdminList
from isthmus.clients.cni.plugins import ListError

LIST = {"cniVersion": "1.0.0", "name": "site", "plugins": [{"type": "first", "ipam": {"type": "second"}}]}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="what is root's can be made by root alone")
pytestmark = needs_root


@pytest.fixture
def admin(tmp_path):
    tmp_path.chmod(0o755)
    made = AdminList(tmp_path / "net.d", "10-site.conflist", tmp_path / "bin")
    for folder in (made.folder, made.plugins):
        folder.mkdir(mode=0o755)
    for name in ("first", "second", "loopback"):
        (made.plugins / name).write_text("#!/bin/true\n")
        (made.plugins / name).chmod(0o755)
    (made.folder / made.name).write_text(json.dumps(LIST))
    (made.folder / made.name).chmod(0o644)
    return made


def test_list_of_roots_is_read(admin):
    network = admin.read()
    assert (network.name, network.version, network.plugins) == ("site", "1.0.0", tuple(LIST["plugins"]))


def links_to(path, target):
    path.rename(target)
    path.symlink_to(target)


CHANGES = {
    "list of another user": (lambda a: os.chown(a.folder / a.name, 1001, 0), "belongs to uid 1001; run chown root"),
    "list for all": (lambda a: (a.folder / a.name).chmod(0o666), "run chmod go-w"),
    "list for its group": (lambda a: (a.folder / a.name).chmod(0o664), "run chmod go-w"),
    "list is a link": (lambda a: links_to(a.folder / a.name, a.folder / "x"), "Too many levels of symbolic links"),
    "list is a folder": (lambda a: [(a.folder / a.name).unlink(), (a.folder / a.name).mkdir(mode=0o755)], "is no file"),
    "list is a pipe": (lambda a: [(a.folder / a.name).unlink(), os.mkfifo(a.folder / a.name, 0o600)], "is no file"),
    "no list": (lambda a: (a.folder / a.name).unlink(), "write the list there"),
    "list too long": (lambda a: (a.folder / a.name).write_text(" " * 65537), "longer than 65536 bytes"),
    "list no text": (lambda a: (a.folder / a.name).write_bytes(b"\xff"), "write it in UTF-8"),
    "folder of another": (lambda a: os.chown(a.folder, 1001, 0), "belongs to uid 1001"),
    "folder for all": (lambda a: a.folder.chmod(0o1777), "run chmod go-w"),
    "folder above of another": (lambda a: os.chown(a.folder.parent, 1001, 0), "belongs to uid 1001"),
    "folder above for all": (lambda a: a.folder.parent.chmod(0o777), "run chmod go-w"),
    "folder is a link": (lambda a: links_to(a.folder, a.folder.with_name("x")), "is a link; name what it leads to"),
    "no folder": (lambda a: a.folder.rename(a.folder.with_name("x")), "make the folder"),
    "plugins of another": (lambda a: os.chown(a.plugins, 1001, 0), "belongs to uid 1001"),
    "plugin of another": (lambda a: os.chown(a.plugins / "second", 1001, 0), "belongs to uid 1001"),
    "plugin for all": (lambda a: (a.plugins / "first").chmod(0o777), "run chmod go-w"),
    "no plugin": (lambda a: (a.plugins / "second").unlink(), "install the plugin, or take it out of the list"),
    "no loopback": (lambda a: (a.plugins / "loopback").unlink(), "install the plugin"),
    "plugin no program": (lambda a: (a.plugins / "first").chmod(0o644), "is no program"),
    "plugin is a link": (lambda a: links_to(a.plugins / "first", a.plugins / "x"), "is a link"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_others_could_have_written_is_refused_with_the_remedy(admin, case):
    change, said = CHANGES[case]
    change(admin)
    with pytest.raises(ListError, match=said):
        admin.read()


@pytest.mark.parametrize("name", ["../10-site.conflist", "/etc/shadow", "", "10-site.conf", ".conflist"])
def test_name_that_leads_elsewhere_is_refused(admin, name):
    with pytest.raises(ListError, match="is no name of a list"):
        AdminList(admin.folder, name, admin.plugins).read()


def test_folder_that_is_no_whole_path_is_refused(admin):
    with pytest.raises(ListError, match="is no absolute path"):
        AdminList(admin.folder / ".." / "net.d", admin.name, admin.plugins).read()
