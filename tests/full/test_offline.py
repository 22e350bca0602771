"""A deployer that holds only a bundle, on a network without a way out, deploys hosts that exist."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.clusters import playbooks
from tests.support.clusters.cluster import ROOT

NAME = "offline"
DEPLOYER = f"{NAME}-deployer"
SITE = "molecule/existing/inventory"
ENVIRONMENT = {"NAME": NAME, "ISTHMUS_INVENTORY": SITE}
STATE = Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local/state")) / "isthmus" / NAME
PACKAGES = "/root/packages"
# What a deployer needs before the project's two commands, from the bundle as everything else.
BEFORE = "make python3-venv openssh-client"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The bundle of the running test bed."""
    path = tmp_path_factory.mktemp("bundle") / "isthmus-bundle.tar"
    assert playbooks.play("bundle", "playbooks/bundle.yml", "-e", f"bundle_file={path}").rc == 0
    return path


@pytest.fixture(scope="module")
def nodes():
    """Two hosts on a network without a way out."""
    inventory = ("ansible-playbook", "-i", SITE)
    remove = (*inventory, "playbooks/teardown.yml")
    playbooks.run("offline_clean", *remove, environment=ENVIRONMENT)
    create = (*inventory, "molecule/existing/create.yml", "-e", '{"provider_local_internal": true}')
    assert playbooks.run("offline_nodes", *create, environment=ENVIRONMENT).rc == 0
    yield
    assert playbooks.run("offline_remove", *remove, environment=ENVIRONMENT).rc == 0


def podman(*arguments):
    return subprocess.run(["podman", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def ulimit(limit):
    return f"--ulimit={limit['Name'].lower().removeprefix('rlimit_')}={limit['Soft']}:{limit['Hard']}"


@pytest.fixture(scope="module")
def deployer(bundle, nodes):
    """A plain Debian with the bundle and the admin's SSH key; a command in it comes back as podman's result."""
    [node] = json.loads(podman("inspect", f"{NAME}-ctl"))
    mounts = [f"--volume={bundle}:/bundle.tar:ro", f"--volume={STATE}/ssh:/root/.local/state/isthmus/{NAME}/ssh:ro"]
    options = ["--detach", f"--name={DEPLOYER}", f"--network={NAME}", f"--label=isthmus.cluster={NAME}"]
    # What the nodes needed on this machine, the deployer needs too.
    engine = [f"--runtime={node['OCIRuntime']}", *map(ulimit, node["HostConfig"]["Ulimits"])]
    podman("run", *engine, *options, *mounts, node["ImageName"], "sleep", "infinity")

    def call(command):
        words = ["podman", "exec", "--env", f"NAME={NAME}", DEPLOYER, "bash", "-euo", "pipefail", "-c", command]
        return subprocess.run(words, capture_output=True, text=True)

    yield call
    podman("rm", "--force", "--time=0", DEPLOYER)


def test_network_has_no_way_out(deployer):
    assert deployer("timeout 5 bash -c '</dev/tcp/10.230.77.10/22'").returncode == 0
    # By name too: podman hands on what the machine's own hosts file says.
    for place in ("deb.debian.org/80", "pypi.org/443", "1.1.1.1/443"):
        assert deployer(f"timeout 5 bash -c '</dev/tcp/{place}'").returncode != 0


def test_bundle_deploys_the_site(deployer):
    prepare = f"""
        mkdir -p {PACKAGES} /root/isthmus
        tar --extract --to-stdout --file /bundle.tar packages.tar | tar --extract --directory {PACKAGES}
        tar --extract --to-stdout --file /bundle.tar isthmus.tar | tar --extract --directory /root/isthmus
        echo 'deb [trusted=yes] file:{PACKAGES} ./' > /etc/apt/bundle.list
        echo 'Dir::Etc::sourcelist "/etc/apt/bundle.list"; Dir::Etc::sourceparts "-";' > /etc/apt/apt.conf.d/99bundle
        apt-get update -qq && apt-get install -y -qq --no-install-recommends {BEFORE}"""
    prepared = deployer(prepare)
    assert prepared.returncode == 0, prepared.stderr
    deployed = deployer(f"cd /root/isthmus && make testbed BUNDLE=/bundle.tar ARGS='-i {SITE}'")
    assert deployed.returncode == 0, deployed.stdout[-6000:] + deployed.stderr[-2000:]
    assert "failed=0" in deployed.stdout


def test_nodes_took_packages_from_the_bundle_alone(deployer):
    origin = podman("exec", f"{NAME}-c1", "apt-cache", "policy", "slurmd")
    assert f"file:{ROOT.anchor}var/cache/isthmus/packages-" in origin
