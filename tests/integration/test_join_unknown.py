"""Nodes of which the inventory knows the name alone, on hosts without the image."""

import pytest

from isthmus.node import certificates
from isthmus.node.errors import JoinError, RefusedError
from isthmus.node.files import Tree
from isthmus.node.host import Host
from isthmus.node.joining import Joining, Kept
from isthmus.node.manifest import Field
from isthmus.node.remote import Controller as Remote
from tests.support.fakes.join_controller import MANIFEST, Commands, Controller

FILES = [{"path": "/etc/address", "content": f"@isthmus.{Field.ADDRESS}@\n"}]
APT = "env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq"


@pytest.fixture
def controller(tmp_path):
    with Controller(tmp_path / "controller", files=FILES, nodes={"c3": ""}) as running:
        yield running


class Installing(Commands):
    """A host's commands, of which apt-get installs what is asked for, where it is to be had."""

    def __init__(self, *to_be_had):
        super().__init__(**{"env": ""})
        self.to_be_had, self.installed = to_be_had, set()

    def __call__(self, words, **options):
        reported = super().__call__(words, **options)
        if words[0] == "env":
            self.installed |= {*words} & {*self.to_be_had}
        return reported


def join(controller, root, commands, **options):
    (root / "opt/isthmus").mkdir(parents=True)
    (root / "opt/isthmus/program").write_text(MANIFEST["release"] + "\n")
    pin = certificates.pin(controller.ca.certificate)
    host = Host(Tree(root), commands)
    joining = Joining(host, Remote(controller.server, pin), lambda _: None, check=False, **options)
    return joining.run("c3", controller.token(), Kept(controller.server, "c3", pin, False))


def test_address_is_the_one_towards_the_controller(controller, tmp_path):
    assert join(controller, tmp_path / "node", Commands()).changed
    assert (tmp_path / "node/etc/address").read_text() == "127.0.0.1\n"


def test_lacking_packages_are_installed_where_it_is_asked(controller, tmp_path, monkeypatch):
    controller.publish(files=FILES, nodes={"c3": ""}, packages={"munge": "", "nftables": ""})
    commands = Installing("nftables")
    packages = Host.packages
    monkeypatch.setattr(
        Host, "packages", lambda self, names: packages(self, names) | dict.fromkeys(commands.installed, "1")
    )
    assert "packages nftables" in join(controller, tmp_path / "node", commands, install=True).changes
    assert f"{APT} install --yes --no-install-recommends nftables" in commands.ran


def test_lacking_packages_are_refused_otherwise(controller, tmp_path):
    controller.publish(files=FILES, nodes={"c3": ""}, packages={"nftables": ""})
    commands = Installing()
    with pytest.raises(RefusedError, match="lacks nftables"):
        join(controller, tmp_path / "node", commands)
    assert not [line for line in commands.ran if "apt-get" in line]


def test_packages_that_are_not_to_be_had_are_named(controller, tmp_path):
    controller.publish(files=FILES, nodes={"c3": ""}, packages={"nftables": ""})
    with pytest.raises(JoinError, match="give this host sources of nftables, or an image"):
        join(controller, tmp_path / "node", Commands(), install=True)
