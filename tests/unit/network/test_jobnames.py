"""Which jobs get a name."""

from ipaddress import IPv4Address

from isthmus.clients.slurm.commands import Holding
from isthmus.model.network import Driver, Job
from isthmus.network.bounds import JOB_NAME_MAX
from isthmus.network.dns.jobnames import renamed


def job(number, name=""):
    return Job(number, 1001, name, Driver.PRIVATE, ("c1",), (IPv4Address("10.64.0.2"),))


def test_names_that_differ_are_reported():
    known = {1: job(1), 2: job(2, "same"), 3: job(3, "old")}
    holding = {1: Holding(1001, "new"), 2: Holding(1001, "same"), 3: Holding(1001, "newer"), 4: Holding(1001, "no pod")}
    assert renamed(known, holding) == {1: "new", 3: "newer"}


def test_job_that_slurm_does_not_name_keeps_its_name():
    assert renamed({1: job(1, "had")}, {}) == {}


def test_another_users_job_of_the_same_id_gives_no_name():
    assert renamed({1: job(1)}, {1: Holding(1002, "theirs")}) == {}


def test_name_is_cut_where_etcd_would_refuse_it():
    assert renamed({1: job(1)}, {1: Holding(1001, "x" * 2000)}) == {1: "x" * JOB_NAME_MAX}
