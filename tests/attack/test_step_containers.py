"""`srun --container-image` with a hostile image, hostile mounts, and a plan of one's own."""

import json

import pytest

from tests.support.attacks.commands import tried

pytestmark = pytest.mark.attack("-")
# Where Apptainer makes places for what it mounts, each a link out of the image to a folder of the user's.
LINKS = {"our program": ".isthmus", "etc": "etc", "a mount of one's own": "data", "dev": "dev"}
STEP = "srun --mem=100 --immediate=30"
# What would be of use to the attacker; each ends well only where it was had.
WAYS = {
    "home of another": "--container-mounts=HOMES/VICTIM:/in ls /in",
    "file of root's": "--container-mounts=/etc:/in cat /in/shadow",
    "root of the node, as root by name": "--container-remap-root --container-mounts=/etc:/in touch /in/isthmus-attack",
    "device": "--container-remap-root --container-writable mknod /isthmus-attack b 7 0",
    "root's socket": "--container-mounts=/run:/in test -w /in/isthmus/networkd-root.sock",
    "first process": "--container-remap-root --container-mounts=/proc:/in:ro cat /in/1/environ",
}
PLAN = {
    "schema": 1,
    "command": ["/bin/sh", "-c", "id -u > TARGET/uid"],
    "environment": [],
    "kept": [],
    "entrypoint": [],
    "workdir": "/",
}
STATE = "cd {target} && find . -printf '%p %y %m %s %l\\n' | sort"


@pytest.fixture(scope="module")
def image(controller):
    """An image of Debian in the cluster's registry."""
    found = controller.run("cat /etc/isthmus/images.json")
    if found.rc:
        pytest.skip("this site has no registry of images")
    return json.loads(found.stdout)["images"]["debian"]["reference"]


@pytest.fixture(scope="module")
def work(login, attacker):
    """A folder that all nodes see, with what links are aimed at."""
    path = login.run_as(attacker, "mktemp -d ~/.isthmus-test-XXXXXX")
    login.run_as(attacker, f"cd {path}; mkdir target source; echo mine > target/existing")
    yield path
    login.output(f"rm -rf {path}")


@pytest.fixture(scope="module")
def linked(login, attacker, work):
    """What the links lead to, before and after steps in images with them."""
    target = f"{work}/target"
    before = login.run_as(attacker, STATE.format(target=target))
    steps = {}
    for number, (way, name) in enumerate(LINKS.items()):
        tree = f"{work}/tree{number}"
        login.run_as(attacker, f"mkdir {tree} && ln -s {target} {tree}/{name} && mksquashfs {tree} {tree}.sqsh -quiet")
        mounts = f"--container-mounts={work}/source:/data/new"
        steps[way] = f"{STEP} --container-image={tree}.sqsh {mounts} /.isthmus/none"
    tried(login, attacker, steps)
    return before, login.run_as(attacker, STATE.format(target=target))


def test_links_where_something_is_mounted(linked):
    """An image's links lead out of it where the step's mounts are made: at four places of Apptainer's."""
    before, after = linked
    assert after == before


@pytest.fixture(scope="module")
def rights(login, attacker, victim, image, work):
    """Way -> what became of it; and of what may be done."""
    homes = login.output(f"getent passwd {victim} | cut -d: -f6").rpartition("/")[0]
    words = {"HOMES": homes, "VICTIM": victim, "TARGET": f"{work}/target"}
    ways = {"control": f"--container-mounts={work}/target:/in cat /in/existing", **WAYS}
    for word, value in words.items():
        ways = {name: command.replace(word, value) for name, command in ways.items()}
    login.run_as(attacker, f"isthmus pull {image}")
    return tried(login, attacker, {name: f"{STEP} --container-image={image} {rest}" for name, rest in ways.items()})


@pytest.mark.parametrize("way", WAYS)
def test_rights_in_a_container_of_a_step(rights, way):
    """What is another's, root's or the node's, from a step's container: by mounts, as root by name."""
    assert rights["control"].worked, rights["control"].said
    assert not rights[way].worked, rights[way].said


def test_plan_of_ones_own(login, attacker, image, work):
    """The words that the plugin on the node reads, written by the user: what they start has the user's rights."""
    plan = json.dumps(PLAN).replace("TARGET", f"{work}/target")
    asked = f"srun --mem=100 --container-image={image} true"
    tried(login, attacker, {"plan": f"export ISTHMUS_STEP_CONTAINER='{plan}'; {asked}"})
    left = login.run_as(attacker, f"cat {work}/target/uid 2>/dev/null || true")
    assert left in ("", login.output(f"id -u {attacker}"))
