"""A user pushes an image of his own, shares it, pulls it as users do, and deletes it."""

import json

import pytest

from tests.support.clusters.registry import quota

CREDENTIAL = "~/.apptainer/docker-config.json"
NAME = "test-push"


@pytest.fixture(scope="module")
def address(controller):
    return json.loads(controller.output("cat /etc/isthmus/images.json"))["registry"]


@pytest.fixture(scope="module")
def image(login, user, references, address):
    """Of the user's, made of the site's busybox; gone at the end."""
    reference = f"{address}/{user}/{NAME}:1"
    login.run_as(user, copy(references["busybox"], reference))
    yield reference
    login.run_as(user, f"isthmus images access {NAME} --private")
    login.run_as(user, f"skopeo delete --authfile {CREDENTIAL} docker://{reference} || true")


def copy(source, target):
    return f"skopeo copy --quiet --authfile {CREDENTIAL} docker://{source} docker://{target}"


def inspect(node, user, image):
    command = f"skopeo inspect --no-tags --authfile {CREDENTIAL} --format '{{{{.Digest}}}}' docker://{image}"
    return node.try_as(user, command)


def overview(login, user):
    return json.loads(login.run_as(user, "isthmus images list --registry --json"))


def test_image_is_listed_with_the_room_it_takes(login, user, image):
    found = overview(login, user)
    (mine,) = [each for each in found["repositories"] if each["name"] == f"{user}/{NAME}"]
    assert list(mine["tags"]) == ["1"]
    assert mine["access"]["readers"] == "private"
    assert 1_000_000 < found["used_bytes"] <= found["quota_bytes"]


def test_owner_pulls_it_on_a_compute_node(login, user, image, work):
    digest = inspect(login, user, image).stdout.strip()
    pulled = json.loads(login.run_as(user, f"srun isthmus pull --json {image}"))
    assert pulled["digest"] == digest
    command = f"apptainer --silent exec {pulled['path']} echo here"
    assert login.run_as(user, f"srun {command}") == "here"
    login.run_as(user, f"cd {work} && apptainer --silent pull own.sif docker://{image} && test -s own.sif")
    login.run_as(user, f"isthmus images remove {digest[:19]}")


def test_file_of_apptainer_is_pushed_and_comes_back(login, user, image, address, work):
    place = f"oras://{address}/{user}/{NAME}-sif:1"
    steps = (
        f"apptainer --silent pull there.sif docker://{image}",
        f"apptainer --silent push there.sif {place}",
        f"apptainer --silent pull back.sif {place}",
        "cmp there.sif back.sif",
        f"skopeo delete --authfile {CREDENTIAL} docker://{address}/{user}/{NAME}-sif:1",
    )
    login.run_as(user, f"cd {work} && {' && '.join(steps)}")


def test_others_neither_pull_nor_push_until_they_are_let_in(login, user, other_user, image, address):
    refused = inspect(login, other_user, image)
    assert refused.rc != 0
    assert "denied" in refused.stderr
    reported = login.try_as(other_user, f"isthmus pull {image}").stderr
    assert "ask its owner to share it" in reported
    assert login.run_as(user, f"isthmus images access {NAME} --users {other_user}").endswith(f": {other_user}")
    assert inspect(login, other_user, image).rc == 0
    assert overview(login, other_user)["shared"] == [f"{user}/{NAME}"]
    for target in (image, f"{address}/{user}/new:1"):
        assert login.try_as(other_user, copy(image, target)).rc != 0
    assert login.try_as(other_user, f"skopeo delete --authfile {CREDENTIAL} docker://{image}").rc != 0
    login.run_as(user, f"isthmus images access {NAME} --private")
    assert inspect(login, other_user, image).rc != 0


# While the registry is cleaned nobody pushes.
@pytest.mark.disruptive
def test_what_was_deleted_is_gone_after_the_cleaning_and_all_else_is_there(
    login, controller, user, references, address
):
    reference = f"{address}/{user}/{NAME}-gone:1"
    login.run_as(user, copy(references["busybox"], reference))
    login.run_as(user, f"skopeo delete --authfile {CREDENTIAL} docker://{reference}")
    cleaned = controller.run("systemctl start isthmus-registry-gc")
    assert cleaned.rc == 0, controller.output("journalctl --quiet --unit=isthmus-registry-gc --lines=50")
    folder = "/var/lib/docker-registry/docker/registry/v2/repositories"
    assert controller.run(f"test -e {folder}/{user}/{NAME}-gone").rc != 0
    assert controller.output("systemctl is-active docker-registry") == "active"
    assert controller.run("systemctl is-active isthmus-registry-readonly").stdout.strip() == "inactive"
    for each in references.values():
        assert inspect(login, user, each).rc == 0
    login.run_as(user, copy(references["busybox"], reference))
    login.run_as(user, f"skopeo delete --authfile {CREDENTIAL} docker://{reference}")


def test_push_beyond_the_quota_is_refused_with_the_reason(login, controller, user, references, address):
    with quota(controller, user, 0):
        refused = login.try_as(user, copy(references["busybox"], f"{address}/{user}/{NAME}-none:1"))
    assert refused.rc != 0
    assert f"the site gives {user} no room in the registry" in refused.stderr
