"""What a network driver costs: its own folder, and one line in `isthmus.model.network.Driver`."""

from importlib import import_module

import pytest

from isthmus.model.network import Driver
from isthmus.network.drivers.contract import Definition
from isthmus.network.drivers.registry import NAMES, definition
from tests.repo import tree

FOLDER = "src/isthmus/network/drivers"


@pytest.mark.parametrize("driver", NAMES)
def test_driver_is_a_folder_of_its_name(driver):
    assert isinstance(definition(driver), Definition)
    assert definition(driver).driver is driver
    assert callable(import_module(f"isthmus.network.drivers.{driver}.network").connect)


def test_folders_are_drivers():
    folders = {path.parent.name for path in tree.files(f"{FOLDER}/*/*.py")}
    assert folders == set(NAMES)


# "private" is an English word, and private networks are what the daemon's own pass makes.
@pytest.mark.parametrize("driver", [driver for driver in NAMES if driver is not Driver.PRIVATE])
def test_no_other_module_of_the_daemon_names_a_driver(driver):
    others = [path for path in tree.files("src/isthmus/network/*.py") if f"{FOLDER}/{driver}/" not in path.as_posix()]
    assert others
    assert not [tree.shown(path) for path in others if tree.driver_pattern(driver).search(path.read_text())]
