"""The project's wheel builds, installs and runs without a package index."""

import subprocess
import sys
import venv
import zipfile

import pytest

from tests.support.clusters.cluster import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True)
    return next(folder.glob("isthmus-*.whl"))


def test_wheel_holds_the_package_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"isthmus"}


def test_installed_command_tells_its_version(wheel, tmp_path):
    # The nodes' own dependencies come from the lock file; here those of the deployer serve.
    venv.create(tmp_path, with_pip=False, system_site_packages=False)
    install = [sys.executable, "-m", "pip", "--python", tmp_path / "bin/python", "install", "--quiet"]
    subprocess.run([*install, "--no-index", "--no-deps", wheel], check=True)
    site = next((tmp_path / "lib").glob("python*/site-packages"))
    deployer = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "deployer.pth").write_text(f"{deployer}\n")
    shown = subprocess.run([tmp_path / "bin/isthmus", "--help"], check=True, capture_output=True, text=True).stdout
    assert "info" in shown
