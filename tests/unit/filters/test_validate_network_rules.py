"""Types, ports, names and overlaps of pod networks are reported before any change."""

import pytest

from isthmus.filters.validate.arguments import argument_problems
from isthmus.filters.validate.check import cluster_role_specs
from isthmus.filters.validate.layers.network_rules import network_rule_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = cluster_role_specs(str(tree.ROOT / "roles"))
GROUPS = {"all": ["ctl"], "controller": ["ctl"], "provider_local": ["ctl"], "apptainer": ["ctl"]}


def problems(**variables):
    site = Site({"ctl": variables}, GROUPS, SPECS, Sources([]))
    return list(argument_problems(site, "network")) or list(network_rule_problems(site))


def bridge(subnet):
    return {
        "apptainer_setuid": True,
        "apptainer_networks": {"bridge": [{"ipam": {"subnet": subnet}}, {"type": "firewall"}]},
    }


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"network_pod_range": "10.64.0.0/10", "provider_local_subnet": "10.231.0.0/24", **bridge("10.22.1.0/24")},
        {"network_pod_range": "10.22.0.0/16", **bridge("10.22.1.0/24"), "apptainer_setuid": False},
        {
            "network_host_ports": [{"port": 5000}, {"protocol": "udp", "port": 65535}],
            "network_srun_ports": "60001-63000",
        },
        {"network_egress": [{"action": "deny", "protocol": "tcp", "ports": [25]}], "network_egress_default": "deny"},
        {"network_domain": "pods.example.org", "network_search_domains": ["example.org", "a-b.c"]},
        {"network_start_timeout_s": 600, "network_lease_idle_s": 1, "network_host_resolver": "none"},
        {"network_lease_ttl_s": 0},
        {"network_lease_ttl_s": 60},
        {"network_login_pods": True, "network_login_ports": "30000-30015", "network_login_ports_each": 16},
        # What is not used may stand there.
        {"network_login_ports_each": 1, "network_srun_ports": "60001-63000"},
    ],
)
def test_right_values_have_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"network_default_driver": "privat"}, "network_default_driver must be one of: private"),
        ({"network_egress_default": "maybe"}, "network_egress_default must be one of: allow, deny"),
        ({"network_egress": [{"action": "drop"}]}, "must be one of: allow, deny, got: drop found in network_egress"),
        ({"network_egress": [{"to": "192.0.2.0/24"}]}, "missing required arguments: action found in network_egress"),
        ({"network_egress": [{"action": "deny", "target": "x"}]}, "network_egress.target"),
        ({"network_host_ports": [{"protocol": "sctp", "port": 5}]}, "must be one of: tcp, udp, got: sctp"),
        ({"network_mtu": "big"}, "network_mtu"),
        ({"network_user_drivers": [1]}, "network_user_drivers"),
        ({"network_host_resolver": "bind"}, "network_host_resolver must be one of"),
        ({"network_pod_range": "127.0.0.0/10"}, "overlaps 127.0.0.0/8 (addresses of no host)"),
        ({"network_pod_range": "169.254.0.0/17"}, "overlaps 169.254.0.0/16"),
        ({"network_pod_range": "224.0.0.0/8"}, "overlaps 224.0.0.0/3"),
        ({"network_pod_range": "10.224.0.0/11", "provider_local_subnet": "10.231.0.0/24"}, "(provider_local_subnet)"),
        ({"network_pod_range": "10.64.0.0/10", "network_dns_upstreams": ["10.64.0.53"]}, "(network_dns_upstreams)"),
        ({"network_pod_range": "10.22.0.0/16", **bridge("10.22.1.0/24")}, "(apptainer_networks of ctl)"),
        *(
            ({"network_host_ports": [{"port": port}]}, f"network_host_ports has port {port}, which {why}")
            for port, why in {
                111: "publishes where file servers listen",
                514: "trusts the client's host",
                988: "is Lustre's",
                2049: "is NFS's",
                2379: "is etcd's",
                4789: "is VXLAN's",
                20048: "is NFS's (mountd)",
            }.items()
        ),
        ({"network_connections_max": 10}, "network_connections_max is 10; write 64 or more"),
        ({"network_connections_rate": 0}, "network_connections_rate is 0; write 1 or more"),
        ({"network_conntrack_max": 10}, "network_conntrack_max is 10; write 1024 or more"),
        ({"network_conntrack_established_s": 60}, "network_conntrack_established_s is 60; write 7440 or more"),
        ({"network_host_ports": [{"port": 0}]}, "network_host_ports has port 0; write one from 1 to 65535"),
        (
            {"network_egress": [{"action": "deny", "protocol": "tcp", "ports": [70000]}]},
            "network_egress has port 70000",
        ),
        ({"network_srun_ports": "63000-60001"}, "network_srun_ports has port 63000-60001; write 60001-63000"),
        ({"network_slurm_ports": "6817-6816"}, "network_slurm_ports has port 6817-6816; write 6817-6819"),
        ({"network_srun_ports": "all"}, "network_srun_ports has port all"),
        ({"network_login_ports": "20000-70000"}, "network_login_ports has port 20000-70000; write 20000-59999"),
        ({"network_login_host_ports": [0]}, "network_login_host_ports has port 0; write one from 1 to 65535"),
        *(
            ({"network_login_pods": True, **variables}, message)
            for variables, message in (
                ({"network_srun_ports": "60001-63000"}, "Slurm could not call srun in a login pod; leave out"),
                ({"slurm_conf_extra": {"SrunPortRange": "60001-63000"}}, "Slurm has an SrunPortRange"),
                ({"network_login_ports": "80-9000"}, "network_login_ports 80-9000 has ports that daemons listen on"),
                (
                    {"network_login_ports": "6000-9000"},
                    "network_login_ports 6000-9000 has ports that daemons listen on",
                ),
                ({"network_login_ports_each": 8}, "network_login_ports_each is 8; write 16 to 40000"),
                ({"network_login_tmp_mib": 0}, "network_login_tmp_mib is 0; write 1 to 1048576"),
                ({"network_login_linger_s": -1}, "network_login_linger_s is -1; write 0 to 86400"),
                ({"network_login_memory_mib": -1}, "network_login_memory_mib is -1; write 0 to"),
            )
        ),
        ({"network_domain": "Pods"}, "network_domain: 'Pods' is no domain"),
        ({"network_domain": "a..b"}, "is no domain"),
        ({"network_search_domains": ["example.org."]}, "network_search_domains: 'example.org.' is no domain"),
        ({"network_start_timeout_s": 601}, "network_start_timeout_s is 601; write seconds from 1 to 600"),
        ({"network_lease_idle_s": 0}, "network_lease_idle_s is 0"),
        ({"network_lease_ttl_s": 59}, "network_lease_ttl_s is 59; write seconds from 60 to 1000000000, or 0 for never"),
        ({"network_lease_ttl_s": -1}, "network_lease_ttl_s is -1"),
    ],
)
def test_wrong_values_are_reported(variables, message):
    assert message in problems(**variables)[0]
