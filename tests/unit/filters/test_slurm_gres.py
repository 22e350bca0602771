"""Generic resources: what nodes declare, or an admin writes, becomes gres.conf."""

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.gres import slurm_gres, slurm_gres_types

HOSTS = [
    {"name": "c1", "gres": ["licence:a100:2", "fast:1"]},
    {"name": "c2", "gres": "licence:a100:2"},
    {"name": "c3", "gres": ["licence:4"]},
    {"name": "c4"},
]


def test_names_are_each_once():
    assert slurm_gres_types(HOSTS) == ["fast", "licence"]
    assert slurm_gres_types(HOSTS[3:]) == []


def test_nodes_have_as_many_as_they_declare():
    assert slurm_gres(HOSTS, []).splitlines() == [
        "NodeName=c1 Name=fast Count=1",
        "NodeName=c3 Name=licence Count=4",
        "NodeName=c[1-2] Name=licence Type=a100 Count=2",
    ]
    assert slurm_gres(HOSTS[3:], []) == ""


def test_gpus_want_devices():
    with pytest.raises(InputError, match="nobody says which devices these are; write slurm_gres_conf"):
        slurm_gres([{"name": "c1", "gres": ["gpu:a100:2"]}], [])


FAST = "NodeName=c1 Name=fast Count=1\n"


def test_lines_of_an_admin_come_before_what_they_do_not_name():
    said = [{"NodeName": "c[1-3]", "Name": "licence", "Count": 9}]
    assert slurm_gres(HOSTS, said) == "NodeName=c[1-3] Name=licence Count=9\n" + FAST
    # What Slurm finds by itself is named with it.
    hosts = [{"name": "c1", "gres": ["gpu:a100:2", "shard:8", "fast:1"]}]
    assert slurm_gres(hosts, [{"AutoDetect": "nvml"}]) == "AutoDetect=nvml\n" + FAST


@pytest.mark.parametrize("gres", ["gpu", "gpu:", "gpu:a100", "gpu:many:x:1", "gpu:1 Name=x", ""])
def test_without_a_count_it_is_refused(gres):
    with pytest.raises(InputError, match="write name:count or name:type:count"):
        slurm_gres([{"name": "c1", "gres": [gres]}], [])


@pytest.mark.parametrize("said", [{"File path": "x"}, {"Name": ""}, {"Name": {"a": 1}}, {"File": "a\nb"}])
def test_line_that_slurm_cannot_read_is_refused(said):
    with pytest.raises(InputError):
        slurm_gres([], [said])
