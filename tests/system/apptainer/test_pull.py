import json

import pytest

from tests.support.fakes.image_tools import REFUSALS

PULLS = 20
CREDENTIALS = "~/.apptainer/docker-config.json"
# Smaller than the image.
FULL_KIB = 512


@pytest.fixture
def home(login, user, work):
    """A home whose cache is empty."""
    path = login.run_as(user, f"mktemp -d {work}/home.XXXXXX")
    login.run_as(user, f"cd {path} && mkdir -pm 700 .isthmus/images tmp")
    return path


def pull(home, image, authfile=CREDENTIALS):
    return f"cd {home}; HOME={home} APPTAINER_TMPDIR={home}/tmp isthmus pull --json --authfile {authfile} {image}"


def left(login, user, home):
    """What lies in the cache and where images are unpacked, but for locks and layers."""
    found = "find .isthmus/images tmp -mindepth 1 -name .layers -prune -o ! -name '*.lock' -print"
    return login.run_as(user, f"cd {home}; {found}").split()


def full(node, path):
    """Commands that put a small disk on a folder, and take it away."""
    owner = node.output(f"stat --format uid=%u,gid=%g {path}")
    return f"mount -t tmpfs -o size={FULL_KIB}k,mode=700,{owner} isthmus-test {path}", f"umount {path}"


def test_image_starts_and_is_the_owners_alone(login, user, references, home):
    pulled = json.loads(login.run_as(user, pull(home, references["busybox"])))
    assert not pulled["cached"]
    assert pulled["path"] == f"{home}/.isthmus/images/{pulled['digest'].replace(':', '-')}.2.squashfs"
    assert login.run_as(user, f"srun apptainer --silent exec {pulled['path']} echo here") == "here"
    assert left(login, user, home) == [pulled["path"].removeprefix(f"{home}/")]


def test_images_are_listed_and_removed(login, user, references, home):
    images = f"cd {home}; HOME={home} isthmus images"
    pulled = json.loads(login.run_as(user, pull(home, references["busybox"])))
    listed = json.loads(login.run_as(user, f"{images} list --json"))["images"]
    assert [(each["digest"], each["size_bytes"]) for each in listed] == [(pulled["digest"], pulled["size_bytes"])]
    # Who pulled it just now may be about to start it.
    assert json.loads(login.run_as(user, f"{images} prune --unused-days 0 --json"))["images"] == []
    login.run_as(user, f"{images} remove {pulled['digest'][:17]}")
    assert left(login, user, home) == []


def test_mirrors_of_a_user_stand_for_a_public_name(login, user, references, home):
    place, _, tag = references["busybox"].rpartition(":")
    login.run_as(user, f"cd {home}; HOME={home} isthmus images mirror docker.io/library {place.rpartition('/')[0]}")
    pulled = json.loads(login.run_as(user, pull(home, f"busybox:{tag}")))
    assert pulled["reference"] == f"docker://docker.io/library/busybox:{tag}"
    assert pulled["digest"] == json.loads(login.run_as(user, pull(home, references["busybox"])))["digest"]


def test_pulls_at_once_on_all_hosts_work_once(login, nodes, user, references, home):
    one = pull(home, references["debian"]).replace("~", f"/home/{user}")
    # Every second one on a compute node: the lock holds across nodes.
    script = f"for i in $(seq {PULLS // 2}); do ({one}) & srun --ntasks=1 --mem=200 sh -c '{one}' & done; wait"
    pulled = [json.loads(line) for line in login.run_as(user, script).splitlines()]
    assert len(pulled) == PULLS
    assert sum(not each["cached"] for each in pulled) == 1
    assert len({each["path"] for each in pulled}) == 1
    assert len(left(login, user, home)) == 1


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_refusal_reports_why_and_leaves_nothing(login, user, references, home, case):
    registry = references["busybox"].split("/")[0]
    names = {"registry": registry, "host": registry.split(":")[0]}
    wrong = json.dumps({"auths": {registry: {"auth": "YWxpY2U6d3Jvbmc="}}})
    login.run_as(user, f"cat > {home}/wrong.json <<'END'\n{wrong}\nEND")
    refused = login.try_as(user, pull(home, case.image.format(**names), case.authfile or CREDENTIALS))
    assert (refused.rc, refused.stdout) == (1, "")
    assert case.reported.format(**names) in refused.stderr
    assert left(login, user, home) == []


@pytest.mark.parametrize("folder", [".isthmus/images", "tmp"])
def test_full_disk_is_reported_and_leaves_nothing(login, user, references, home, folder):
    mount, umount = full(login, f"{home}/{folder}")
    login.output(mount)
    try:
        refused = login.try_as(user, pull(home, references["busybox"]))
        assert (refused.rc, refused.stdout) == (1, "")
        assert f"no space is left in {home}/.isthmus/images or {home}/tmp; " in refused.stderr
        assert left(login, user, home) == []
    finally:
        login.output(umount)
    assert json.loads(login.run_as(user, pull(home, references["busybox"])))["cached"] is False


@pytest.mark.parametrize(("signal", "status"), [("TERM", 143), ("KILL", 137)])
def test_ended_pull_leaves_no_half_image(login, user, references, home, signal, status):
    one = pull(home, references["debian"]).replace("isthmus pull", "exec isthmus pull")
    unpacking = f"{home}/tmp/.isthmus-pull.*/root"
    script = f"({one}) & while ! ls -d {unpacking} 2>&-; do sleep 0.05; done >&2; kill -{signal} $!; wait $!; echo $?"
    assert login.run_as(user, script).split()[-1] == str(status)
    assert not [path for path in left(login, user, home) if path.endswith(".squashfs")]
    again = json.loads(login.run_as(user, pull(home, references["debian"])))
    assert again["cached"] is False
    in_cache = [path for path in left(login, user, home) if path.startswith(".isthmus/")]
    assert in_cache == [again["path"].removeprefix(f"{home}/")]
