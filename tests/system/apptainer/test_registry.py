import json
import shlex

import pytest

CREDENTIAL = ".apptainer/docker-config.json"
IMAGES = "/etc/isthmus/images.json"
# No password may stand in a command line: the journal keeps those.
ASK = """
import json, pathlib, sys, urllib.error, urllib.request
address, path, who, method = sys.argv[1:]
auth = json.loads((pathlib.Path.home() / ".apptainer/docker-config.json").read_text())["auths"][address]["auth"]
def ask(path, method="GET", **headers):
    return urllib.request.urlopen(urllib.request.Request(f"https://{address}{path}", headers=headers, method=method))
try:
    basic = {"user": "Basic " + auth, "wrong": "Basic YWxpY2U6d3Jvbmc="}.get(who)
    scope = "repository:" + "/".join(path.split("/")[2:4]) + ":pull,push,delete"
    token = json.load(ask("/auth/token?scope=" + scope, Authorization=basic))["token"] if basic else ""
    print(ask(path, method, **({"Authorization": "Bearer " + token} if token else {})).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
SHOW = """
import base64, json, sys
for entry in json.load(open(sys.argv[1]))["auths"].values():
    print(base64.b64decode(entry["auth"]).decode().split(":")[1])
"""


@pytest.fixture(scope="module")
def images(controller):
    return json.loads(controller.output(f"cat {IMAGES}"))["images"]


@pytest.fixture(scope="module")
def address(images):
    return images["busybox"]["reference"].split("/")[0]


@pytest.fixture
def folder(login, user):
    """A folder of the user's that is gone afterwards."""
    path = login.run_as(user, "mktemp -d ~/.isthmus-test-XXXXXX")
    yield path
    login.run_as(user, f"rm -rf {path}")


@pytest.fixture
def ask(login, user, address):
    """Ask the registry as the user, as a stranger, or with a wrong password; return the status."""

    def status(path, who="user", method="GET"):
        return login.run_as(user, f"python3 -c {shlex.quote(ASK)} {address} {path} {who} {method}")

    return status


def inspect(node, user, reference, options="--authfile ~/" + CREDENTIAL):
    return node.try_as(user, f"skopeo inspect --no-tags --format '{{{{.Digest}}}}' {options} docker://{reference}")


def test_every_host_knows_the_same_images(nodes, images, address):
    assert set(images) >= {"debian", "busybox", "mpi", "mpi-plain"}
    for node in nodes.values():
        assert json.loads(node.output(f"cat {IMAGES}")) == {"schema": 1, "registry": address, "images": images}


def test_images_are_those_of_the_registry(login, user, images):
    for image in images.values():
        assert inspect(login, user, image["reference"]).stdout.strip() == image["digest"]


def test_image_without_a_tag_is_the_present_one(login, user, images, address):
    assert inspect(login, user, f"{address}/isthmus/busybox").stdout.strip() == images["busybox"]["digest"]


def test_user_pulls_on_a_compute_node(controller, computes, user, folder, images):
    copied = computes[0].run(
        f"su {user} -c 'skopeo copy --authfile ~{user}/{CREDENTIAL}"
        f" docker://{images['busybox']['reference']} oci:{folder}/busybox'"
    )
    assert copied.rc == 0, copied.stderr
    assert computes[0].run(f"test -f {folder}/busybox/index.json").rc == 0


def test_credential_is_the_users_alone(login, cluster):
    for user in cluster.users:
        assert login.run_as(user, f"stat -c '%a %U' ~/.apptainer ~/{CREDENTIAL}").split() == ["700", user, "600", user]


def test_credentials_differ(login, user, other_user):
    assert login.run_as(user, f"cat ~/{CREDENTIAL}") != login.run_as(other_user, f"cat ~/{CREDENTIAL}")


def test_registry_refuses_a_stranger(ask):
    assert ask("/v2/isthmus/busybox/tags/list", "stranger") == "401"
    assert ask("/v2/isthmus/busybox/tags/list", "wrong") == "401"
    assert ask("/v2/isthmus/busybox/tags/list") == "200"


def test_pull_without_a_credential_is_refused(login, user, images):
    refused = inspect(login, user, images["busybox"]["reference"], options="--no-creds")
    assert refused.rc != 0
    assert "no account of the registry" in refused.stderr


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "blobs/uploads/"), ("PUT", "manifests/latest"), ("DELETE", "manifests/{digest}")],
)
def test_user_can_neither_push_to_the_sites_images_nor_remove_one(ask, images, method, path):
    assert ask(f"/v2/isthmus/busybox/{path.format(**images['busybox'])}", method=method) == "401"


def test_registry_is_reached_by_nginx_alone(controller):
    assert controller.run("systemctl is-active isthmus-registry-readonly").stdout.strip() == "inactive"
    listens = controller.output("ss -Hltnp")
    assert "docker-registry" not in listens
    assert "nginx" in listens
    assert not [line for line in listens.splitlines() if line.split()[3].endswith(":80")]


@pytest.mark.parametrize("unit", ["isthmus-tokend", "isthmus-registry", "docker-registry"])
def test_daemon_of_the_registry_has_no_rights(controller, unit):
    show = f"systemctl show --property=MainPID --value {unit}"
    status = controller.output(f"cat /proc/$({show})/status")
    assert "\nUid:\t0" not in status
    assert "\nCapEff:\t0000000000000000\n" in status
    assert "\nNoNewPrivs:\t1\n" in status


def test_passwords_are_closed_to_users(controller, user):
    secret = ("registry-auth.json", "tokend.json")
    for path in [*(f"/etc/isthmus/{name}" for name in secret), "/var/lib/isthmus-tokend/token.key"]:
        refused = controller.try_as(user, f"cat {path}")
        assert refused.rc != 0
        assert "Permission denied" in refused.stderr


def test_storage_is_closed_to_users(controller, user):
    assert controller.try_as(user, "ls /var/lib/docker-registry").rc != 0


def test_password_is_in_no_log(controller, user, folder):
    controller.output(f"python3 -c {shlex.quote(SHOW)} ~{user}/{CREDENTIAL} > {folder}/password")
    assert len(controller.output(f"cat {folder}/password")) >= 40
    assert controller.run(f"grep -rqF -f {folder}/password /var/log").rc == 1
    assert controller.run(f"journalctl --quiet --output=verbose | grep -qF -f {folder}/password").rc == 1
