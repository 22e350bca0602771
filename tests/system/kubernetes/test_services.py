"""Services with addresses, from within pods of a live site: by name, on another port, and the API server's own."""

import json
import re

import pytest

from tests.support.waiting import wait

POD_S = 180
MANIFEST = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}], sessionAffinity: ClientIP}
---
apiVersion: v1
kind: Service
metadata: {name: balanced}
spec: {selector: {app: web}, ports: [{port: 8000, targetPort: 8080}], type: LoadBalancer}
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec: {selector: {app: nobody}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: web
          image: BUSYBOX
          command: [sh, -c, 'hostname > /www/index.html; exec httpd -f -p 8080 -h /www']
          ports: [{name: http, containerPort: 8080}]
          readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
          volumeMounts: [{name: www, mountPath: /www}]
      volumes: [{name: www, emptyDir: {}}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: BUSYBOX, command: [sleep, '3600']}]
---
apiVersion: v1
kind: Pod
metadata: {name: account}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: DEBIAN
      command:
        - sh
        - -c
        - |
          cd /var/run/secrets/kubernetes.io/serviceaccount
          printf '%s\\r\\n' 'GET /api/v1/nodes HTTP/1.1' 'Host: x' "Authorization: Bearer $(cat token)" \\
            'Connection: close' '' | openssl s_client -quiet -verify_return_error -CAfile ca.crt \\
            -verify_ip "$KUBERNETES_SERVICE_HOST" -connect "$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT" 2>&1
"""


class Space:
    """A namespace of the first user's."""

    name = "services"

    def __init__(self, cluster, domain):
        self.cluster, self.domain = cluster, domain

    def kubectl(self, command, text=""):
        return self.cluster.kubectl(f"--namespace {self.name} {command}", text)

    def tries(self, command):
        """Run kubectl, which may fail."""
        words = f"kubectl --kubeconfig .isthmus/kubeconfig --namespace {self.name} {command}"
        return self.cluster.login.try_as(self.cluster.user, words)

    def asks(self, url, where="client"):
        """Return what a pod hears; nothing while it hears nothing."""
        return self.tries(f"exec {where} -- wget -q -T 5 -O - {url}").stdout.strip()

    def hears(self, url, where="client", count=12):
        """Return all that a pod hears in many requests of one exec."""
        loop = f"for i in $(seq {count}); do wget -q -T 5 -O - {url} || echo nothing; done"
        return set(self.kubectl(f"exec {where} -- sh -c '{loop}'").split())

    def pods(self):
        """Return the names of the pods that answer."""
        listed = json.loads(self.kubectl("get pods -l app=web -o json"))["items"]
        return {pod["metadata"]["name"] for pod in listed if not pod["metadata"].get("deletionTimestamp")}


@pytest.fixture(scope="module")
def space(mine, images, settings):
    if settings["headless"]:
        pytest.skip("this site's Services are headless")
    made = Space(mine, settings["domain"])
    mine.kubectl(f"create namespace {made.name}")
    try:
        wait(lambda: made.tries("get serviceaccount default").rc == 0)
        manifest = MANIFEST.replace("BUSYBOX", images["busybox"])
        made.kubectl("apply -f -", manifest.replace("DEBIAN", images["debian"]))
        made.kubectl(f"wait --for=condition=Ready pod/client --timeout={POD_S}s")
        made.kubectl(f"rollout status deployment/web --timeout={POD_S}s")
        wait(lambda: made.asks("http://web") in made.pods())
        yield made
    finally:
        mine.kubectl(f"delete namespace {made.name} --timeout=120s")


def test_service_is_reached_by_name_on_its_own_port(space):
    assert space.hears("http://web") == space.pods()
    assert space.hears(f"http://web.{space.name}.svc.{space.domain}:80", count=3) <= space.pods()


def test_service_has_an_address_of_its_own(space):
    address = space.kubectl("get service web -o jsonpath={.spec.clusterIP}")
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", address)
    assert space.asks(f"http://{address}") in space.pods()
    assert address in space.kubectl(f"exec client -- nslookup web.{space.name}.svc.{space.domain}")


def test_load_balancers_manifest_is_taken_and_its_address_works(space):
    assert space.asks("http://balanced:8000") in space.pods()


def test_client_with_affinity_stays_with_one_pod(space):
    assert len(space.hears("http://sticky")) == 1


def test_service_without_pods_refuses_at_once(space):
    told = space.tries("exec client -- wget -q -T 30 -O - http://empty")
    assert told.rc != 0
    assert "refused" in told.stderr


def test_pod_reaches_itself_by_its_own_service(space):
    for name in space.pods():
        assert name in space.hears("http://web", where=name)


def test_rules_follow_pods_that_go_and_come(space):
    space.kubectl("scale deployment/web --replicas=0")
    refused = "exec client -- wget -q -T 30 -O - http://web"
    wait(lambda: "refused" in space.tries(refused).stderr, timeout_s=90)
    space.kubectl("scale deployment/web --replicas=2")
    space.kubectl(f"rollout status deployment/web --timeout={POD_S}s")
    wait(lambda: space.hears("http://web") == space.pods(), timeout_s=30)


def test_account_reaches_the_api_server_by_its_service(space):
    """Nodes are not the account's to see; the refusal names whom the API server took the pod for."""
    space.kubectl(f"wait --for=jsonpath={{.status.phase}}=Succeeded pod/account --timeout={POD_S}s")
    told = space.kubectl("logs account")
    assert "HTTP/1.1 403" in told
    assert f"system:serviceaccount:{space.name}:default" in told


def test_two_users_have_the_same_addresses_and_do_not_meet(space, theirs):
    address = space.kubectl("get service web -o jsonpath={.spec.clusterIP}")
    theirs.kubectl(f"create service clusterip same --tcp=80:8080 --clusterip={address}")
    try:
        assert space.hears("http://web") == space.pods()
    finally:
        theirs.kubectl("delete service same")
