"""A cluster from nothing, twice, and two users' side by side."""

import json
import shlex
from ipaddress import IPv4Network

import pytest

from tests.support.clusters.cluster import ROOT
from tests.support.clusters.user_clusters import fetch
from tests.support.wait import wait

SECRETS = ("kubeconfig", "cluster/pki/ca.key", "cluster/encryption.yaml", "cluster/etcd")


def test_cluster_answers_its_user(mine):
    assert "Kubernetes control plane is running" in mine.kubectl("cluster-info")
    assert mine.status()["up"]


def test_programs_run_in_one_job_of_the_user(mine, controller):
    job = mine.job()
    assert (job["name"], job["state"]) == ("isthmus-control-plane", "RUNNING")
    assert controller.output(f"squeue --noheader --format=%u --jobs={job['id']}") == mine.user
    programs = mine.status()["programs"]
    ready = {name for name, each in programs.items() if each["state"] == "ready"}
    assert ready >= {"etcd", "kube-apiserver", "kube-controller-manager", "coredns"}


def test_second_up_finds_the_first(mine):
    again = mine.up()
    assert not again["created"]
    assert again["job"] == mine.job()["id"]


def test_version_that_is_asked_for_is_kept(mine, login):
    running = mine.status()["version"].removeprefix("v")
    release = running.rpartition(".")[0]
    try:
        login.run_as(mine.user, f"isthmus up --kubernetes {release}")
        reported = mine.status()["kubernetes"]
        assert (reported["wanted"], reported["data"], reported["warnings"]) == (release, running, [])
        assert f"{running} runs; this site has" in login.run_as(mine.user, "isthmus status")
        refused = login.try_as(mine.user, "isthmus up --kubernetes 1.20")
        assert refused.rc == 1
        assert "this site has no Kubernetes 1.20; choose from" in refused.stderr
    finally:
        login.run_as(mine.user, "isthmus up --kubernetes newest")
    assert mine.status()["kubernetes"]["wanted"] == ""


def test_kubelet_is_of_the_version_of_its_api_server(mine):
    says = mine.kubectl("get node slurm --output=jsonpath={.status.nodeInfo.kubeletVersion}")
    assert says == mine.status()["version"]


def test_two_ups_at_once_submit_one_job(theirs, login, controller):
    theirs.down()
    login.run_as(theirs.user, "isthmus up --json > /dev/null & isthmus up --json > /dev/null; wait")
    listed = controller.output(f"squeue --noheader --user={theirs.user} --name=isthmus-control-plane --format=%i")
    assert len(listed.split()) == 1


def test_users_do_not_collide(mine, theirs):
    assert mine.status()["server"] != theirs.status()["server"]
    for each in (mine, theirs):
        each.kubectl(f"create namespace of-{each.user}")
    assert f"of-{theirs.user}" not in mine.kubectl("get namespaces -o name")


def test_other_user_reaches_no_port(mine, theirs, login):
    rules = json.loads(login.output("cat /etc/isthmus/network.json"))["rules"]
    if int(login.output(f"id -u {theirs.user}")) in rules["admins"]:
        pytest.skip(f"{theirs.user} may reach everybody's pods: network_admin_users")
    ask = fetch(f"{mine.status()['server']}/version")
    # Refused by the server, so reached.
    assert "401" in login.try_as(mine.user, ask).stderr
    refused = login.try_as(theirs.user, ask)
    assert refused.rc != 0
    assert "HTTP Error" not in refused.stderr


def test_user_without_certificate_gets_nothing(mine, login):
    reported = login.try_as(mine.user, fetch(f"{mine.status()['server']}/api"))
    assert "HTTP Error 401" in reported.stderr


@pytest.mark.parametrize("path", SECRETS)
def test_other_user_reads_no_secret(mine, theirs, login, path):
    assert login.run(f"test -e ~{mine.user}/.isthmus/{path}").rc == 0
    assert login.try_as(theirs.user, f"ls -R ~{mine.user}/.isthmus/{path}").rc != 0


def test_deployment_is_bound_to_the_node(mine, images):
    mine.kubectl(f"create deployment bound --image={images['busybox']} --replicas=2")
    nodes = "get pods -l app=bound -o jsonpath={.items[*].spec.nodeName}"
    wait(lambda: mine.kubectl(nodes), lambda reported: reported == "slurm slurm")
    mine.kubectl("delete deployment bound --wait=false")


def test_dns_answers_in_the_pod_network(mine, login, settings):
    """From a job of the same user, as a pod would ask."""
    address = mine.status()["server"].split("//")[1].split(":")[0]
    source = (ROOT / "tests/support/remote/dns_question.py").read_text()
    login.run_as(mine.user, f"cat > .dns_question.py <<'END'\n{source}\nEND")
    service = str(IPv4Network(settings["services"])[1])
    ask = f"python3 .dns_question.py {address} kubernetes.default.svc.{settings['domain']}"
    try:
        assert login.run_as(mine.user, f"srun --pod-network --mem=50 {ask}") == service
    finally:
        login.run_as(mine.user, "rm .dns_question.py")


def test_refused_partition_is_reported_and_not_kept(theirs, login):
    theirs.down()
    refused = login.try_as(theirs.user, "isthmus up --partition nowhere")
    assert refused.rc == 1
    assert "Slurm refuses the control plane's job" in refused.stderr
    theirs.up()


def test_kubectl_finds_the_cluster_by_itself(mine, login):
    """At once, in a login shell and in one that reads no profile; KUBECONFIG is for a user to set."""
    up = "isthmus up 2>/dev/null"
    assert "KUBECONFIG" not in login.run_as(mine.user, f"{up} && kubectl get nodes >/dev/null")
    assert login.run_as(mine.user, "env -u KUBECONFIG sh -c 'kubectl get nodes --output=name'") == "node/slurm"
    assert login.run_as(mine.user, "stat --format=%a .kube/config") == "600"
    assert "/.isthmus/kubeconfig" in login.run_as(mine.user, f"KUBECONFIG=x {up} | grep '^export KUBECONFIG='")


def test_users_own_kubeconfig_is_merged_into_on_request_alone(mine, login):
    theirs = "{apiVersion: v1, kind: Config, clusters: [], users: [], contexts: [], current-context: work}"
    login.run_as(mine.user, f"rm -rf .kube; mkdir .kube; echo {shlex.quote(theirs)} > .kube/config")
    try:
        shown = login.run_as(mine.user, "isthmus up 2>/dev/null")
        assert "isthmus kubeconfig --merge" in shown
        assert "export KUBECONFIG=" in shown
        assert login.run_as(mine.user, "cat .kube/config") == theirs
        login.run_as(mine.user, "isthmus kubeconfig --merge")
        assert login.run_as(mine.user, "stat --format=%a .kube/config") == "600"
        assert login.run_as(mine.user, "kubectl config current-context") == "isthmus"
    finally:
        login.run_as(mine.user, "rm -r .kube; isthmus up")


def test_doctor_finds_nothing_broken(theirs, login):
    """Of a cluster whose kubelet no test has killed."""
    reported = login.try_as(theirs.user, "isthmus doctor --json")
    assert '"level": "failure"' not in reported.stdout
    assert reported.rc == 0


@pytest.mark.parametrize("program", ["job", "etcd", "kube-apiserver", "coredns"])
def test_logs_report_each_program(mine, login, program):
    assert login.run_as(mine.user, f"isthmus logs {program} --lines 3")
