import shutil
import subprocess

import pytest

from isthmus.filters.images.image import local_apt_options, local_apt_sources

pytestmark = pytest.mark.skipif(not shutil.which("apt-get"), reason="this machine has no apt")


def ask(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_sources_of_this_machine_serve_the_nodes_release():
    targets = ask("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)", "Created-By: Packages")
    release, *pockets = local_apt_sources(targets, "trixie")
    assert release.split()[::2] == ["deb", "trixie"]
    assert {line.split()[2] for line in pockets} <= {"trixie-security", "trixie-updates"}


def test_options_of_this_machine_are_options_apt_reads():
    for option in local_apt_options(ask("apt-config", "dump", "--no-empty", "Acquire")):
        name = option.split(maxsplit=1)[0]
        assert ask("apt-config", "-o", option.rstrip(";").replace(' "', "=", 1).rstrip('"'), "dump", "--no-empty", name)
