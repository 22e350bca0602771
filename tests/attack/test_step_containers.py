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
# Has a program write that plan where it meant to write its own.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
int setenv(const char *name, const char *value, int overwrite)
{
    int (*real)(const char *, const char *, int) = (int (*)(const char *, const char *, int))dlsym(RTLD_NEXT, "setenv");
    return real(name, strcmp(name, "ISTHMUS_STEP_CONTAINER") == 0 ? getenv("PLAN") : value, overwrite);
}
"""
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


@pytest.fixture(scope="module")
def written(login, attacker, image, work):
    """Way by which a user's own plan goes to a node -> the step, and whose process its command then was.

    srun writes the variable itself. What is preloaded into srun, a program of the user's, writes it afterwards.
    """
    plan = json.dumps(PLAN).replace("TARGET", f"{work}/target")
    login.run_as(attacker, f"isthmus pull {image}")
    login.run_as(attacker, f"cat > {work}/own.c <<'END'\n{LIBRARY}\nEND")
    login.run_as(attacker, f"gcc -shared -fPIC -o {work}/own.so {work}/own.c")
    step = f"{STEP} --container-image={image} id -u"
    ways = {
        "none": step,
        "environment": f"export ISTHMUS_STEP_CONTAINER='{plan}'; {step}",
        "preloaded": f"export PLAN='{plan}'; LD_PRELOAD={work}/own.so {step}",
    }
    found = {}
    for way, command in ways.items():
        done = tried(login, attacker, {way: command})[way]
        found[way] = done, login.run_as(attacker, f"cat {work}/target/uid 2>/dev/null; rm -f {work}/target/uid")
    return found


def test_plan_of_ones_own_in_the_environment(written, login, attacker):
    """The words that the plugin on the node reads, in the user's environment: srun writes its own in their place."""
    uid = login.output(f"id -u {attacker}")
    for way in ("none", "environment"):
        step, ran = written[way]
        assert step.worked, step.said
        assert uid in step.said.splitlines()
        assert ran == ""


def test_plan_of_ones_own(written, login, attacker):
    """The same words, written by the user into srun: what they start has the user's rights."""
    step, ran = written["preloaded"]
    assert ran == login.output(f"id -u {attacker}"), f"the plan did not come to the node: {step.said}"
    assert not step.worked, step.said
