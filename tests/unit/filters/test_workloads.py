"""The MPI Operator's manifest becomes the site's, and a chart with the same objects."""

import json

import pytest
import yaml

from isthmus.filters.workloads import mpi as workloads_mpi
from isthmus.filters.workloads import offer as workloads
from tests.repo import tree

POLICIES = tree.ROOT / "roles/workloads/files/mpi/policies.yaml"
IMAGES = {
    f"mpi-operator-{name}": f"ctl:5000/workloads/mpi-operator-{name}:k" for name in ("controller", "openmpi", "mpich")
}
# As the module has them, with what is of interest here.
SOURCE = """
---
apiVersion: v1
kind: Namespace
metadata: {name: mpi-operator}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mpijobs.kubeflow.org}
spec:
  versions:
    - schema:
        properties:
          slotsPerWorker: {description: of a worker, type: integer}
          template:
            description: of pods
            properties: {description: {type: string, description: a field of this name}, image: {description: known}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: mpi-operator, namespace: mpi-operator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: mpi-operator}
subjects: [{kind: ServiceAccount, name: mpi-operator, namespace: mpi-operator}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mpi-operator, namespace: mpi-operator, labels: {app: mpi-operator}}
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: mpi-operator
          image: mpioperator/mpi-operator:1.2.3
          args: [-alsologtostderr, --lock-namespace=mpi-operator]
      serviceAccountName: mpi-operator
"""
GROUPS = """
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.x-k8s.io}
"""


@pytest.fixture
def site(tmp_path):
    texts = {"mpi-operator.yaml": SOURCE, "podgroups.yaml": GROUPS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    obtained = {name: {"path": str(tmp_path / name), "version": "1.2.3"} for name in texts}
    return {
        "obtained": obtained,
        "policies": str(POLICIES),
        "images": IMAGES,
        "domain": "k8s.example.test",
        "memory_mib": 96,
    }


@pytest.fixture
def files(site):
    return workloads.workloads_mpi_files(site)


@pytest.fixture
def manifest(files):
    return list(yaml.safe_load_all(files["manifest.yaml"]))


def one(objects, kind):
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def test_controller_is_the_sites(manifest):
    deployment = one(manifest, "Deployment")
    assert deployment["metadata"]["labels"] == {"app": "mpi-operator", "app.kubernetes.io/version": "1.2.3"}
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "ctl:5000/workloads/mpi-operator-controller:k"
    assert container["args"] == [
        "-alsologtostderr",
        "--lock-namespace=mpi-operator",
        "--cluster-domain=k8s.example.test",
        workloads_mpi.GANGS,
        *workloads_mpi.REQUESTS,
    ]
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "96Mi"}, "limits": {"memory": "96Mi"}}


def test_definition_has_no_second_description_of_pods(manifest):
    (jobs,) = [each for each in manifest if each["metadata"]["name"] == "mpijobs.kubeflow.org"]
    (version,) = jobs["spec"]["versions"]
    assert version["schema"]["properties"] == {
        "slotsPerWorker": {"description": "of a worker", "type": "integer"},
        "template": {"properties": {"description": {"type": "string"}, "image": {}}},
    }


def test_objects_come_in_an_order_in_which_they_can_be_made(manifest):
    kinds = [each["kind"] for each in manifest]
    assert kinds[:3] == ["Namespace", "CustomResourceDefinition", "CustomResourceDefinition"]
    assert {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} < {*kinds}


def test_policies_are_bound_and_know_the_domain(manifest):
    named = {each["metadata"]["name"] for each in manifest if each["kind"] == "MutatingAdmissionPolicy"}
    bindings = [each for each in manifest if each["kind"] == "MutatingAdmissionPolicyBinding"]
    known = {f"isthmus-mpi-{name}" for name in ("gangs", "launchers", "workers")}
    assert {each["spec"]["policyName"] for each in bindings} == named == known
    assert '".svc.k8s.example.test"' in json.dumps(manifest).replace("\\", "")


def test_open_mpi_5_is_reported_its_hosts():
    """A name of release 4 alone has every rank run in the launcher, without a word."""
    text = POLICIES.read_text()
    assert "{'name': 'PRTE_MCA_prte_default_hostfile', 'value': '/etc/mpi/hostfile'}" in text
    assert "{'name': 'PRTE_MCA_prte_keep_fqdn_hostnames', 'value': 'false'}" in text


def test_manifest_can_be_applied_without_the_server_side(manifest):
    """The annotation of the last applied object holds 256 KiB."""
    assert all(len(json.dumps(each)) < 256 * 1024 for each in manifest)


def test_chart_has_the_same_objects(files, manifest):
    text = files["chart/templates/operator.yaml"].replace("{{ toJson .Values.resources }}", "{}")
    charted = list(yaml.safe_load_all(text)) + list(yaml.safe_load_all(files["chart/crds/kinds.yaml"]))
    whole = {(each["kind"], each["metadata"]["name"]) for each in manifest} - {("Namespace", "mpi-operator")}
    assert {(each["kind"], each["metadata"]["name"]) for each in charted} == whole


def test_chart_takes_its_values(files):
    text = files["chart/templates/operator.yaml"]
    values = yaml.safe_load(files["chart/values.yaml"])
    assert values["image"] == IMAGES["mpi-operator-controller"]
    assert values["clusterDomain"] == "k8s.example.test"
    assert '"image": "{{ .Values.image }}"' in text
    assert '"resources": {{ toJson .Values.resources }}' in text
    assert '"--lock-namespace={{ .Release.Namespace }}"' in text
    assert text.count("{{") == text.count("{{ .Values.") + text.count("{{ toJson .Values.") + text.count("{{ .Release.")
    assert yaml.safe_load(files["chart/Chart.yaml"])["appVersion"] == "1.2.3"


def test_example_for_each_mpi_with_an_image(files):
    examples = {path: yaml.safe_load(text) for path, text in files.items() if path.startswith("examples/")}
    assert {path: each["spec"]["mpiImplementation"] for path, each in examples.items()} == {
        "examples/pi-openmpi.yaml": "OpenMPI",
        "examples/pi-mpich.yaml": "MPICH",
    }
    for each in examples.values():
        workers = each["spec"]["mpiReplicaSpecs"]["Worker"]
        assert (
            workers["template"]["spec"]["containers"][0]["image"]
            == IMAGES[each["metadata"]["name"].replace("pi-", "mpi-operator-")]
        )


def test_folders_come_before_their_files():
    entries = workloads.workloads_entries("/w", {"mpi": {"chart/crds/a.yaml": "a", "b.yaml": "b"}, "none": {}})
    assert [each["path"] for each in entries] == [
        "/w",
        "/w/mpi",
        "/w/mpi/chart",
        "/w/mpi/chart/crds",
        "/w/mpi/chart/crds/a.yaml",
        "/w/mpi/b.yaml",
    ]
    assert [each.get("state") for each in entries] == ["directory"] * 4 + [None] * 2


def test_index_has_what_is_enabled(site):
    reported = {"obtained": {"mpi-operator": {"version": "1.2.3"}}, "folder": "/w", "images": IMAGES}
    offered = json.loads(workloads.workloads_index(["mpi"], reported))["workloads"]
    assert (offered["mpi"]["version"], offered["mpi"]["folder"]) == ("1.2.3", "/w/mpi")
    assert json.loads(workloads.workloads_index([], reported)) == {"schema": 1, "workloads": {}}


@pytest.mark.parametrize(("enabled", "images", "programs"), [(["mpi"], 3, 4), ([], 0, 0)])
def test_images_follow_what_is_enabled(enabled, images, programs):
    assert len(workloads.workloads_images(enabled)) == images
    assert len(workloads.workloads_programs(enabled)) == programs


def test_intel_mpi_comes_with_its_licence_accepted_alone(site):
    assert "mpi-operator-intel" not in workloads.workloads_images(["mpi"])
    assert "mpi-operator-intel" in workloads.workloads_images(["mpi"], intel=True)
    assert workloads.workloads_images([], intel=True) == []
    site["images"] = {**IMAGES, "mpi-operator-intel": "ctl:5000/workloads/mpi-operator-intel:k"}
    example = yaml.safe_load(workloads.workloads_mpi_files(site)["examples/pi-intel.yaml"])
    assert example["spec"]["mpiImplementation"] == "Intel"


def test_reference_is_of_what_is_in_the_image():
    recipes = [{"name": "mpi-operator-mpich", "key": "abc"}]
    assert workloads.workloads_references(recipes, "ctl:5000/workloads") == {
        "mpi-operator-mpich": "ctl:5000/workloads/mpi-operator-mpich:abc"
    }
