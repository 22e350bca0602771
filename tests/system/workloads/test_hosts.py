"""What the role leaves on hosts, and in the registry."""

import json
import re

import yaml


def offered(node):
    return json.loads(node.output("cat /etc/isthmus/workloads.json"))["workloads"]


def test_users_and_others_read_what_there_is(login, user):
    mpi = offered(login)["mpi"]
    listed = login.run_as(user, f"find {mpi['folder']} -type f -readable").split()
    assert {path.removeprefix(f"{mpi['folder']}/") for path in listed} >= {
        "manifest.yaml",
        "chart/Chart.yaml",
        "chart/crds/kinds.yaml",
        "examples/pi-openmpi.yaml",
        "examples/pi-mpich.yaml",
    }
    assert login.output(f"find {mpi['folder']} ! -user root -o -perm /022 ! -type l") == ""


def test_hosts_of_the_layer_are_of_one_mind(controller, login):
    assert offered(controller) == offered(login)


def test_registry_has_each_image(controller, login, user):
    for reference in offered(login)["mpi"]["images"].values():
        asked = f"skopeo inspect --no-tags --authfile=/etc/isthmus/registry-auth.json --format='{{{{.Digest}}}}' docker://{reference}"
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", controller.output(asked).strip())


def test_manifest_is_of_the_sites_image_and_domain(login, settings):
    mpi = offered(login)["mpi"]
    manifest = list(yaml.safe_load_all(login.output(f"cat {mpi['folder']}/manifest.yaml")))
    (deployment,) = [each for each in manifest if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == mpi["images"]["mpi-operator-controller"]
    assert f"--cluster-domain={settings['domain']}" in container["args"]


def test_nobody_else_is_offered_what_the_site_does_not_have(login, user):
    reported = login.try_as(user, "isthmus workloads add argo")
    assert reported.rc == 1
    assert "the site offers no workload 'argo'; it offers: mpi" in reported.stderr
