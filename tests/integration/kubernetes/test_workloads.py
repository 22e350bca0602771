"""The MPI Operator's objects, as role workloads makes them of its module, in a real API server."""

import json
import subprocess
import uuid

import pytest
import yaml

from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.filters.workloads import offer
from tests.support.clusters.cluster import ROOT
from tests.support.servers.etcd import program
from tests.support.wait import wait

DOMAIN = "k8s.example.test"
LABELS = "training.kubeflow.org"
IMAGES = {name: f"ctl:5000/workloads/{name}:k" for name in offer.workloads_images(["mpi"])}


@pytest.fixture(scope="module")
def files():
    """What the role writes, of the real manifest."""
    reported = {name: {"path": program(name), "version": "1.2.3"} for name in ("mpi-operator.yaml", "podgroups.yaml")}
    policies = ROOT / "roles/workloads/files/mpi/policies.yaml"
    site = {"policies": str(policies), "images": IMAGES, "domain": DOMAIN, "memory_mib": 128}
    return offer.workloads_mpi_files({**site, "obtained": reported})


@pytest.fixture(scope="module")
def applied(api_server, files, tmp_path_factory):
    """All of it, by a plain `kubectl apply`, and the policies at work."""
    path = tmp_path_factory.mktemp("workloads") / "manifest.yaml"
    path.write_text(files["manifest.yaml"])
    # The Deployment has no namespace's account and no pods here; it is made nevertheless.
    done = api_server.kubectl("apply", "--filename", str(path))
    assert done.returncode == 0, done.stderr
    done = api_server.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/mpijobs.kubeflow.org")
    assert done.returncode == 0, done.stderr
    wait(lambda: "PRTE_MCA_prte_default_hostfile" in environment(launched(api_server, openmpi())))
    # A policy that changes objects knows a new kind only with the API server's next look at its own OpenAPI.
    example = files["examples/pi-openmpi.yaml"]
    wait(lambda: tried(api_server, example).returncode == 0, timeout_s=60)
    return api_server


def tried(server, manifest):
    return server.kubectl("create", "--filename=-", "--dry-run=server", "--validate=strict", input=manifest)


def openmpi(**more):
    return {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", **more}


def made(server, role, spec):
    """A pod as the operator makes it, as the API server has it then."""
    labels = {f"{LABELS}/operator-name": "mpi-operator", f"{LABELS}/job-name": "pi", f"{LABELS}/job-role": role}
    meta = {"name": f"pi-{role}-{uuid.uuid4().hex[:6]}", "labels": labels}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    done = server.kubectl("create", "--filename=-", "--dry-run=server", "--output=json", input=json.dumps(pod))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def launched(server, variables, role="launcher"):
    env = [{"name": name, "value": value} for name, value in variables.items()]
    return made(server, role, {"containers": [{"name": "launcher", "image": "i", **({"env": env} if env else {})}]})


def environment(pod):
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0].get("env", [])}


def test_launcher_of_open_mpi_is_reported_its_hosts_by_both_names(applied):
    assert environment(launched(applied, openmpi())) == {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "false",
        "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
    }


def test_what_the_user_has_set_stays(applied):
    reported = environment(launched(applied, openmpi(PRTE_MCA_prte_default_hostfile="/mine", LAST="1")))
    assert (reported["PRTE_MCA_prte_default_hostfile"], reported["LAST"]) == ("/mine", "1")
    assert reported["PRTE_MCA_plm_ssh_args"]


@pytest.mark.parametrize(
    ("variables", "role"),
    [({}, "launcher"), ({"HYDRA_HOST_FILE": "/etc/mpi/hostfile"}, "launcher"), (openmpi(), "other")],
)
def test_other_pods_stay_as_they_are(applied, variables, role):
    assert environment(launched(applied, variables, role)) == variables


def test_worker_finds_its_launcher_in_the_sites_domain(applied):
    usual = "pi.default.svc.cluster.local"
    spec = {"containers": [{"name": "worker", "image": "i"}], "dnsConfig": {"searches": [usual]}}
    assert made(applied, "worker", spec)["spec"]["dnsConfig"]["searches"] == [usual, f"pi.default.svc.{DOMAIN}"]
    del spec["dnsConfig"]
    assert "dnsConfig" not in made(applied, "worker", spec)["spec"]


def submitted(server, **spec):
    """The scheduling policy of an MPIJob of three workers, as the API server has it."""
    replicas = {"Worker": {"replicas": 3, "template": {"spec": {"containers": [{"name": "worker", "image": "i"}]}}}}
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": f"job-{uuid.uuid4().hex[:6]}"},
        "spec": {"mpiReplicaSpecs": replicas, **spec},
    }
    done = server.kubectl("create", "--filename=-", "--dry-run=server", "--output=json", input=json.dumps(job))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["spec"].get("runPolicy", {}).get("schedulingPolicy", {})


LATER = {"launcherCreationPolicy": "WaitForWorkersReady"}


@pytest.mark.parametrize(
    "policy", [{}, {"runPolicy": {"suspend": False}}, {"runPolicy": {"schedulingPolicy": {"queue": "q"}}}]
)
def test_workers_do_not_wait_for_a_launcher_that_waits_for_them(applied, policy):
    assert submitted(applied, **LATER, **policy)["minAvailable"] == 3


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({**LATER, "runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}, 1),
        ({"launcherCreationPolicy": "AtStartup"}, None),
        ({**LATER, "mpiReplicaSpecs": {}}, None),
    ],
)
def test_who_says_how_many_start_together_is_heard(applied, spec, least):
    assert submitted(applied, **spec).get("minAvailable") == least


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_example_is_an_mpijob(applied, files, name):
    done = tried(applied, files[f"examples/pi-{name}.yaml"])
    assert done.returncode == 0, done.stderr


def test_definition_still_explains_its_own_fields(applied):
    reported = applied.kubectl("explain", "mpijob.spec.runLauncherAsWorker").stdout
    assert "launcher" in reported.partition("DESCRIPTION")[2].lower()


@pytest.fixture
def client(applied):
    """What `isthmus workloads` asks the server with."""
    keys = applied.pki
    return ApiServer(Access(applied.url, keys / "ca.crt", keys / "admin.crt", keys / "admin.key"))


def test_objects_are_applied_by_the_server_too(client, files):
    """As `isthmus workloads add` does; over what kubectl has made, and twice."""
    for item in [*yaml.safe_load_all(files["manifest.yaml"])] * 2:
        client.apply(item)


@pytest.mark.parametrize(("foreground", "finalizers"), [(True, ["foregroundDeletion"]), (False, None)])
def test_job_deleted_in_the_foreground_waits_for_what_it_owns(client, files, foreground, finalizers):
    item = yaml.safe_load(files["examples/pi-openmpi.yaml"])
    item["metadata"]["name"] = f"gone-{uuid.uuid4().hex[:6]}"
    client.apply(item)
    client.delete(item, foreground=foreground)
    base = f"/apis/{item['apiVersion']}/namespaces/{item['metadata'].get('namespace', 'default')}/mpijobs"
    left = [each for each in client.get(base)["items"] if each["metadata"]["name"] == item["metadata"]["name"]]
    assert [each["metadata"]["finalizers"] for each in left] == ([finalizers] if finalizers else [])


def test_chart_renders_the_same_operator(files, tmp_path):
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    command = [program("helm"), "template", "x", tmp_path / "chart", "--include-crds", "--namespace=mpi-operator"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    rendered = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout)}
    manifest = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(files["manifest.yaml"])}
    del manifest["Namespace", "mpi-operator"]
    assert rendered == manifest
