"""An admission webhook served by a pod: the API server finds it by its Service's endpoints."""

import base64

import pytest

from tests.support.wait import wait

CONFIGURATION = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: judge}}
webhooks:
  - name: judge.example.org
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    timeoutSeconds: 5
    clientConfig: {{caBundle: {certificate}, service: {{namespace: webhook, name: judge, port: 8443}}}}
    rules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
    objectSelector: {{matchLabels: {{judged: 'yes'}}}}
"""


@pytest.fixture(scope="module")
def judge(space):
    """The API server asks the pod about labelled ConfigMaps; not any more at the end."""
    space.ready("pod/judge")
    certificate = base64.b64encode(space.kubectl("exec judge -- cat /tmp/tls.crt").encode()).decode()
    space.apply(CONFIGURATION.format(certificate=certificate))
    yield space
    space.kubectl("delete validatingwebhookconfiguration judge")


def create(space, name, label):
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{judged: '{label}'}}}}"
    return space.try_kubectl("create -f -", text)


def test_pod_is_asked(judge):
    refused = wait(lambda: create(judge, "asked", "yes"), lambda done: "a pod says no" in done.stderr)
    assert refused.rc == 1
    assert judge.try_kubectl("get configmap asked").rc == 1


def test_pod_is_not_asked_about_others(judge):
    assert create(judge, "free", "no").rc == 0
