"""Node names fold, hardware is declared or found, nodes.conf keeps names and addresses paired."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.nodes import slurm_expand, slurm_fold, slurm_hardware, slurm_nodes

FACTS = {
    "processor_vcpus": 16,
    "processor_count": 2,
    "processor_cores": 4,
    "processor_threads_per_core": 2,
    "memtotal_mb": 100_000,
}
SMALL = {"cpus": 32, "memory_mib": 8192}


def node(name: str, address: str, **hardware: Any) -> dict[str, Any]:
    return {"name": name, "address": address, **(hardware or SMALL)}


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["c1"], "c1"),
        (["c2", "c1"], "c[1-2]"),
        (["c1", "c2", "c4", "login"], "c[1-2,4],login"),
        (["c01", "c02"], "c[01-02]"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r1n[1-2],r2n[1-2]"),
        (["c1", "c1"], "c1"),
    ],
)
def test_fold(names: list[str], folded: str) -> None:
    assert slurm_fold(names) == folded
    assert set(slurm_expand(folded)) == set(names)


@pytest.mark.parametrize("name", ["", "c[1-2]", "@compute", "a b", "a,b", "c1&c2", "-c"])
def test_fold_refuses_what_is_no_name(name: str) -> None:
    with pytest.raises(InputError, match="is no name of a node"):
        slurm_fold([name])


@pytest.mark.parametrize(
    ("facts", "declared", "expected"),
    [
        ({}, SMALL, SMALL),
        (FACTS, SMALL, SMALL),
        (FACTS, {**SMALL, "features": ["big"]}, {**SMALL, "features": ["big"]}),
        (FACTS, {"cpus": 4}, {"cpus": 4, "memory_mib": 95_000}),
        (
            FACTS,
            {"memory_mib": 5},
            {"cpus": 16, "sockets": 2, "cores_per_socket": 4, "threads_per_core": 2, "memory_mib": 5},
        ),
        (FACTS, {"sockets": 1, "cores_per_socket": 16}, {"cpus": 16, "sockets": 1, "cores_per_socket": 16}),
        (
            {"processor_vcpus": 3, "processor_count": 2, "memtotal_mb": 1000},
            {},
            {"cpus": 3, "memory_mib": 744},
        ),
    ],
)
def test_hardware(facts: dict[str, Any], declared: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {"memory_mib": 95_000, **expected} == slurm_hardware(facts, declared)


@pytest.mark.parametrize(
    ("facts", "declared", "message"),
    [
        ({}, {}, r"nobody knows cpus.*set slurm_node\.cpus"),
        ({}, {"cpus": 2}, "nobody knows memory_mib"),
        ({}, {**SMALL, "cpu": 2}, "unknown key of slurm_node: 'cpu'; did you mean 'cpus'"),
        ({}, {**SMALL, "cpus": 0}, r"slurm_node\.cpus is 0.*at least 1"),
        ({}, {**SMALL, "cpus": True}, r"slurm_node\.cpus is True"),
        ({}, {**SMALL, "memory_mib": "8G"}, r"slurm_node\.memory_mib is '8G'"),
        ({}, {**SMALL, "sockets": 3}, "3 sockets x 1 cores x 1 threads do not give 32 CPUs"),
        ({**FACTS, "memtotal_mb": 200}, {}, r"slurm_node\.memory_mib is -56"),
    ],
)
def test_hardware_refuses(facts: dict[str, Any], declared: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        slurm_hardware(facts, declared)


def test_nodes_of_equal_hardware_share_a_line() -> None:
    hosts = [node("c2", "10.231.0.12"), node("c1", "10.231.0.11")]
    assert slurm_nodes(hosts) == ("NodeName=c[1-2] NodeAddr=10.231.0.[11-12] CPUs=32 RealMemory=8192 State=UNKNOWN\n")


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.12", "10.0.0.11"], ["10.0.0.9", "9.0.0.9"]],
)
def test_nodes_whose_addresses_fold_in_another_order_have_lines_of_their_own(addresses: list[str]) -> None:
    lines = slurm_nodes([node("c1", addresses[0]), node("c2", addresses[1])]).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["NodeName=c1", f"NodeAddr={addresses[0]}"],
        ["NodeName=c2", f"NodeAddr={addresses[1]}"],
    ]


def test_nodes_of_many_subnets_keep_their_pairs() -> None:
    pairs = {f"c{i}": f"10.0.{i % 3}.{i}" for i in range(1, 40)}
    names, addresses = [], []
    for line in slurm_nodes([node(name, address) for name, address in pairs.items()]).splitlines():
        name, address = (word.split("=")[1] for word in line.split()[:2])
        names += slurm_expand(name)
        addresses += slurm_expand(address)
    assert dict(zip(names, addresses, strict=True)) == pairs


def test_nodes_write_all_they_are_reported() -> None:
    layout = {"sockets": 2, "cores_per_socket": 4, "threads_per_core": 2, "weight": 5}
    host = node("g1", "10.0.0.1", cpus=16, memory_mib=512, gres="gpu:a100:2", features=["big", "ib"], **layout)
    assert slurm_nodes([host]) == (
        "NodeName=g1 NodeAddr=10.0.0.1 CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=512 "
        "Gres=gpu:a100:2 Features=big,ib Weight=5 State=UNKNOWN\n"
    )


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ([], "no compute node.*group compute"),
        ([node("c1", "10.0.0.1"), node("c1", "10.0.0.2")], "node c1 .*in use"),
        ([node("c1", "10.0.0.1"), node("c2", "10.0.0.1")], r"node c2 \(10\.0\.0\.1\).*in use"),
        ([node("c1", "10.0.0.1", cpus=1)], "nobody knows memory_mib"),
        (
            [node("c1", "10.0.0.1", **SMALL, adress="x")],
            "unknown key of a compute node.*did you mean 'address'",
        ),
        ([node("c1", "")], "a compute node lacks address"),
        ([node("c1", "10.0.0.1 State=DOWN")], "is no name of a node"),
        ([node("c1", "10.0.0.1", **SMALL, features=["a\nb"])], "features has a line break"),
    ],
)
def test_nodes_refuse(hosts: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        slurm_nodes(hosts)
