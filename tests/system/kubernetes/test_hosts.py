"""What the role leaves on hosts."""

import json

import pytest


def test_every_host_has_the_image_of_its_settings(nodes):
    for node in nodes.values():
        settings = json.loads(node.output("cat /etc/isthmus/kubernetes.json"))
        assert settings["schema"] == 1
        assert node.host.file(settings["image"]).mode == 0o644


def test_image_holds_programs_of_the_named_versions(computes, user):
    node = computes[0]
    settings = json.loads(node.output("cat /etc/isthmus/kubernetes.json"))
    inside = f"apptainer --quiet exec --containall --no-home {settings['image']}"
    for program in ("kube-apiserver", "kube-controller-manager", "etcd", "coredns"):
        flag = "-version" if program == "coredns" else "--version"
        reported = node.run_as(user, f"{inside} /usr/local/bin/{program} {flag}")
        assert settings["versions"][program] in reported


def test_images_are_equal_on_all_hosts(nodes):
    sums = set()
    for node in nodes.values():
        settings = json.loads(node.output("cat /etc/isthmus/kubernetes.json"))
        assert settings["image"] == settings["images"][0]["file"]
        sums.add(node.output(f"sha256sum {' '.join(each['file'] for each in settings['images'])}"))
    assert len(sums) == 1


@pytest.mark.parametrize(("program", "ask"), [("kubectl", "version --client"), ("helm", "version --short")])
def test_kubectl_and_helm_are_where_users_log_in(login, user, program, ask):
    settings = json.loads(login.output("cat /etc/isthmus/kubernetes.json"))
    assert settings["versions"][program] in login.run_as(user, f"{program} {ask}")
