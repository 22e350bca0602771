"""Figures are for admins: no user of a shared host reads them, and no other certificate of the cluster's CA does."""

import shlex

import pytest

from tests.support.clusters.user_clusters import fetch

# Of an address: what a TLS server answers to a certificate, or to none.
ASK = """
import socket, ssl, sys
context = ssl.create_default_context(cafile="/etc/isthmus/ca.crt")
context.check_hostname = False
if len(sys.argv) > 2:
    context.load_cert_chain(sys.argv[2] + ".crt", sys.argv[2] + ".key")
with context.wrap_socket(socket.create_connection((sys.argv[1], 9100), 10)) as connection:
    connection.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
    print(connection.recv(12).decode())
"""
TLS = "/etc/isthmus/tls"


def asked(node, address, certificate=""):
    return node.run(f"python3 -c {shlex.quote(ASK)} {address} {certificate}")


@pytest.fixture(scope="module")
def addresses(nodes):
    return [node.variables["base_address"] for node in nodes.values() if "monitoring" in node.variables["groups"]]


def test_prometheus_alone_is_answered(controller, addresses):
    for address in addresses:
        done = asked(controller, address, f"{TLS}/monitoring")
        assert "200" in done.stdout, done.stderr


@pytest.mark.parametrize("certificate", ["", f"{TLS}/etcd"])
def test_others_are_refused(cluster, addresses, certificate):
    """Etcd's certificate is of the same CA and for clients, too."""
    member = cluster.part("etcd")[0]
    for address in addresses:
        done = asked(member, address, certificate)
        assert done.rc != 0
        assert "200" not in done.stdout


def test_certificate_of_another_node_is_refused(computes, addresses):
    assert asked(computes[0], addresses[0], f"{TLS}/monitoring").rc != 0


def test_node_exporter_is_not_on_the_loopback(computes, user):
    done = computes[0].run("bash -c 'exec 3<>/dev/tcp/127.0.0.1/9100'")
    assert done.rc != 0


@pytest.mark.parametrize("path", ["/run/isthmus-exporter/node.prom", "/etc/isthmus/monitoring/node.yml"])
def test_user_reads_no_files_of_it(computes, user, path):
    assert computes[0].run(f"test -s {path}").rc == 0
    assert computes[0].run(f"runuser -u {user} -- cat {path}").rc != 0


def test_user_reads_no_secrets_of_it(controller, user):
    for path in (
        "/etc/isthmus/monitoring/password",
        "/etc/isthmus/monitoring/alertmanager.yml",
        f"{TLS}/monitoring.key",
    ):
        assert controller.run(f"test -s {path}").rc == 0
        assert controller.run(f"runuser -u {user} -- cat {path}").rc != 0


@pytest.mark.parametrize("port", [9090, 9093])
def test_nobody_gets_in_without_the_password(controller, port):
    code = f"import urllib.request, ssl; c = ssl.create_default_context(cafile='/etc/isthmus/ca.crt'); \
urllib.request.urlopen('https://localhost:{port}/api/v1/alerts', context=c)"
    done = controller.run(f'python3 -c "{code}"')
    assert "HTTP Error 401" in done.stderr


def test_daemons_run_without_rights(controller):
    for unit in ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter"):
        shown = controller.output(f"systemctl show --property=User,CapabilityBoundingSet,NoNewPrivileges {unit}")
        assert set(shown.split()) == {"User=prometheus", "CapabilityBoundingSet=", "NoNewPrivileges=yes"}


def test_figures_of_the_dns_are_roots(computes, user):
    ask = "bash -c 'exec 3<>/dev/tcp/127.0.0.153/153'"
    assert computes[0].run(ask).rc == 0
    assert computes[0].run(f"runuser -u {user} -- {ask}").rc != 0


def test_figures_of_users_are_not_shown_to_users(controller, user):
    path = "/run/isthmus-jobsd/users.prom"
    assert controller.run(f"test -s {path}").rc == 0
    assert controller.run(f"runuser -u {user} -- cat {path}").rc != 0
    shown = controller.output(fetch("http://127.0.0.1:7445/metrics"))
    assert "isthmus_jobsd_kubelets" in shown
    assert "isthmus_user_" not in shown


def test_exporter_listens_nowhere(nodes):
    for node in nodes.values():
        assert "isthmus-exporte" not in node.output("ss -Hltunp")
