"""Services with addresses, from within pods of a live site: by name, on another port, and the API server's own."""

import re
from dataclasses import dataclass

import pytest

from tests.support.clusters.user_clusters import Space
from tests.support.wait import wait

POD_S = 180


@dataclass(frozen=True)
class Services:
    """Services of the first user's, and the pods that ask for them."""

    space: Space
    domain: str

    @property
    def name(self):
        return self.space.name

    def kubectl(self, command):
        return self.space.kubectl(command)

    def tries(self, command):
        return self.space.try_kubectl(command)

    def asks(self, url, where="client"):
        """Return what a pod hears; nothing while it hears nothing."""
        return self.tries(f"exec {where} -- wget -q -T 5 -O - {url}").stdout.strip()

    def hears(self, url, where="client", count=12):
        """Return all that a pod hears in many requests of one exec."""
        loop = f"for i in $(seq {count}); do wget -q -T 5 -O - {url} || echo nothing; done"
        return set(self.kubectl(f"exec {where} -- sh -c '{loop}'").split())

    def pods(self):
        """Return the names of the pods that answer."""
        listed = self.space.get("pods -l app=web")["items"]
        return {pod["metadata"]["name"] for pod in listed if not pod["metadata"].get("deletionTimestamp")}


@pytest.fixture(scope="module")
def services(settings, request):
    if settings["headless"]:
        pytest.skip("this site's Services are headless")
    found = Services(request.getfixturevalue("space"), settings["domain"])
    found.space.ready("pod/client", POD_S)
    found.kubectl(f"rollout status deployment/web --timeout={POD_S}s")
    wait(lambda: found.asks("http://web") in found.pods())
    return found


def test_service_is_reached_by_name_on_its_own_port(services):
    assert services.hears("http://web") == services.pods()
    assert services.hears(f"http://web.{services.name}.svc.{services.domain}:80", count=3) <= services.pods()


def test_service_has_an_address_of_its_own(services):
    address = services.kubectl("get service web -o jsonpath={.spec.clusterIP}")
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", address)
    assert services.asks(f"http://{address}") in services.pods()
    assert address in services.kubectl(f"exec client -- nslookup web.{services.name}.svc.{services.domain}")


def test_load_balancers_manifest_is_taken_and_its_address_works(services):
    assert services.asks("http://balanced:8000") in services.pods()


def test_client_with_affinity_stays_with_one_pod(services):
    assert len(services.hears("http://sticky")) == 1


def test_service_without_pods_refuses_at_once(services):
    reported = services.tries("exec client -- wget -q -T 30 -O - http://empty")
    assert reported.rc != 0
    assert "refused" in reported.stderr


def test_pod_reaches_itself_by_its_own_service(services):
    for name in services.pods():
        assert name in services.hears("http://web", where=name)


def test_rules_follow_pods_that_go_and_come(services):
    services.kubectl("scale deployment/web --replicas=0")
    refused = "exec client -- wget -q -T 30 -O - http://web"
    wait(lambda: "refused" in services.tries(refused).stderr, timeout_s=180)
    services.kubectl("scale deployment/web --replicas=2")
    services.kubectl(f"rollout status deployment/web --timeout={POD_S}s")
    wait(lambda: services.hears("http://web") == services.pods())


def test_account_reaches_the_api_server_by_its_service(services):
    """Nodes are not the account's to see; the refusal names whom the API server took the pod for."""
    services.kubectl(f"wait --for=jsonpath={{.status.phase}}=Succeeded pod/account --timeout={POD_S}s")
    reported = services.kubectl("logs account")
    assert "HTTP/1.1 403" in reported
    assert f"system:serviceaccount:{services.name}:default" in reported


def test_two_users_have_the_same_addresses_and_do_not_meet(services, theirs):
    address = services.kubectl("get service web -o jsonpath={.spec.clusterIP}")
    theirs.kubectl(f"create service clusterip same --tcp=80:8080 --clusterip={address}")
    try:
        assert services.hears("http://web") == services.pods()
    finally:
        theirs.kubectl("delete service same")
