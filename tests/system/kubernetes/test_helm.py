"""A Helm chart, as users install one."""

import pytest

from tests.support.wait import wait

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: page\nversion: 0.1.0\n",
    "values.yaml": "text: hello\nreplicas: 2\n",
    "templates/page.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {index.html: "{{ .Values.text }} from {{ .Release.Namespace }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: page}}
  template:
    metadata: {labels: {app: page}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: page
          image: {{ required "an image" .Values.image }}
          command: [httpd, -f, -p, "8080", -h, /www]
          readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
          volumeMounts: [{name: www, mountPath: /www}]
      volumes: [{name: www, configMap: {name: "{{ .Release.Name }}"}}]
""",
    "templates/tests/ask.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: ask, annotations: {helm.sh/hook: test}}
spec:
  restartPolicy: Never
  containers:
    - name: ask
      image: {{ .Values.image }}
      command: [sh, -c, 'echo "{{ .Values.text }}" | grep hello']
""",
}


@pytest.fixture(scope="module")
def helm(mine, login, images):
    """Run helm in a namespace of its own, beside a chart; both gone at the end."""
    folder = login.run_as(mine.user, "mktemp -d ~/.isthmus-test-XXXXXX")
    for path, text in CHART.items():
        login.run_as(
            mine.user, f"cd {folder} && mkdir -p {path.rpartition('/')[0] or '.'} && cat > {path} <<'END'\n{text}\nEND"
        )

    def run(command):
        set_up = f"cd {folder}; export KUBECONFIG=$HOME/.isthmus/kubeconfig"
        return login.run_as(mine.user, f"{set_up}; helm --namespace charts {command} --timeout 200s")

    try:
        run(f"install page . --create-namespace --wait --set image={images['busybox']}")
        yield run
    finally:
        mine.kubectl("delete namespace charts --ignore-not-found --wait=false")
        login.output(f"rm -rf {folder}")


def test_chart_is_installed(helm, mine):
    pods = "--namespace charts get pods -l app=page -o jsonpath={.items[*].status.containerStatuses[0].ready}"
    assert mine.kubectl(pods) == "true true"
    assert mine.kubectl("--namespace charts exec deploy/page -- cat /www/index.html") == "hello from charts"


def test_chart_is_tested(helm):
    assert "Succeeded" in helm("test page")


def test_chart_is_upgraded_and_removed(helm, mine):
    helm("upgrade page . --reuse-values --wait --set replicas=1")
    # Helm waits for pods that come, not for those that go.
    ready = "--namespace charts get deploy page -o jsonpath={.status.readyReplicas}"
    wait(lambda: mine.kubectl(ready), lambda count: count == "1")
    helm("uninstall page --wait")
    assert mine.kubectl("--namespace charts get deploy/page configmap/page --ignore-not-found -o name") == ""
