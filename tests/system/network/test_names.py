"""Names of pods, as pods and hosts resolve them."""

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait
from tests.system.network.conftest import pods

ASK = "getent ahostsv4 {} | cut -d' ' -f1 | sort -u | xargs"


@pytest.fixture(scope="module")
def domain(nodes, controller):
    """The cluster's domain of pods, as the daemon has it."""
    return controller.output(
        "python3 -c \"import json; print(json.load(open('/etc/isthmus/network.json'))['dns']['domain'])\""
    )


def resolve(pod, name):
    return pod.try_run(ASK.format(name)).stdout.split()


def test_pod_resolves_pods_of_its_job_by_short_and_full_names(serving, two_computes, user, domain):
    near, far = (node.name for node in two_computes)
    mine = serving[0]
    job = mine[near].job
    for name in ("pod1", f"pod1.{job}.{user}.{domain}"):
        wait(lambda name=name: resolve(mine[near], name), lambda seen: seen == [mine[far].address])


def test_job_id_is_the_name_of_all_its_pods(serving, two_computes, domain, user):
    near = two_computes[0].name
    mine, second, _ = serving
    wanted = sorted(pod.address for pod in second.values())
    (job,) = {pod.job for pod in second.values()}
    wait(lambda: sorted(resolve(mine[near], f"{job}.{user}.{domain}")), lambda seen: seen == wanted)


def test_address_resolves_to_the_pods_name(serving, two_computes, domain, user):
    mine = serving[0]
    near, far = (node.name for node in two_computes)
    reported = mine[near].run(f"getent hosts {mine[far].address}")
    assert f"pod1.{mine[far].job}.{user}.{domain}" in reported.split()


def test_job_name_is_that_of_the_newest_job(serving, two_computes, login, controller, user, domain):
    near = two_computes[0].name
    pod = serving[0][near]
    options = f"--pod-network --mem=20 --nodelist={near} --job-name='Train.Net 1'"
    with jobs.running(login, controller, user, options) as first, jobs.running(login, controller, user, options) as job:
        assert int(first) < int(job)
        wanted = [each.address for each in pods(login, user, job, [near]).values()]
        wait(lambda: resolve(pod, f"train-net-1.{user}.{domain}"), lambda seen: seen == wanted)
        assert resolve(pod, "train-net-1") == resolve(pod, "pod0.train-net-1") == wanted
    wait(lambda: resolve(pod, f"train-net-1.{user}.{domain}"), lambda seen: seen == [])


def test_name_of_digits_is_no_jobs_name(serving, two_computes, login, controller, user, domain):
    near = two_computes[0].name
    mine, second, _ = serving
    (taken,) = {pod.job for pod in second.values()}
    with jobs.running(login, controller, user, f"--pod-network --mem=20 --nodelist={near} --job-name={taken}") as job:
        (address,) = (each.address for each in pods(login, user, job, [near]).values())
        wait(lambda: resolve(mine[near], f"{job}.{user}.{domain}"), lambda seen: seen == [address])
        assert address not in resolve(mine[near], f"{taken}.{user}.{domain}")


def test_pod_resolves_no_name_of_another_user(serving, two_computes, domain, other_user):
    near = two_computes[0].name
    mine, _, theirs = serving
    (job,) = {pod.job for pod in theirs.values()}
    wait(lambda: resolve(theirs[near], f"{job}.{other_user}.{domain}"))
    assert resolve(mine[near], f"{job}.{other_user}.{domain}") == []
    assert resolve(mine[near], f"pod0.{job}.{other_user}.{domain}") == []


def test_hosts_resolve_names_of_pods_and_of_others(serving, two_computes, login, controller, user, other_user, domain):
    mine, _, theirs = serving
    near = two_computes[0].name
    for host in {node.name: node for node in (login, controller, *two_computes)}.values():
        for pod, who in ((mine[near], user), (theirs[near], other_user)):
            seen = ASK.format(f"pod0.{pod.job}.{who}.{domain}")
            wait(
                lambda host=host, seen=seen: host.run_as(user, seen).split(), lambda got, pod=pod: got == [pod.address]
            )
        # What the host could resolve before it can resolve still.
        assert host.run("getent ahostsv4 localhost").rc == 0


@pytest.mark.disruptive
def test_resolver_of_a_host_is_brought_back(two_computes, domain):
    host = two_computes[0]
    if "systemd-resolved" in host.output("cat /etc/isthmus/network.json"):
        pytest.skip("systemd-resolved has a drop-in here")
    before = host.output("cat /etc/resolv.conf")
    assert "nameserver 127.0.0.153" in before.splitlines()
    host.output("sed '/127.0.0.153/d' /etc/resolv.conf > /tmp/resolv && cat /tmp/resolv > /etc/resolv.conf")
    wait(lambda: host.output("cat /etc/resolv.conf"), lambda seen: seen == before)


def test_users_names_are_no_files_of_others(two_computes, serving, other_user):
    host = two_computes[0]
    assert host.try_as(other_user, "cat /run/isthmus/dns/*.hosts").rc != 0


def test_pod_searches_its_job_and_its_user(serving, two_computes, domain, user):
    pod = serving[0][two_computes[0].name]
    search = pod.run("grep ^search /etc/resolv.conf").split()
    assert search[1:3] == [f"{pod.job}.{user}.{domain}", f"{user}.{domain}"]
