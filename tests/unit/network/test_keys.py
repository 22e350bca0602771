"""Keys of etcd."""

from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Transport
from isthmus.network.state.keys import (
    AttachmentKey,
    ExposedKey,
    GatewayKey,
    HeardKey,
    JobKey,
    Keys,
    LeaseKey,
    NodeKey,
    RangesKey,
    StoredError,
    UserKey,
)

KEYS = Keys("blue")


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (NodeKey("c1.example"), "nodes/c1.example"),
        (UserKey(0), "users/0"),
        (UserKey(4294967294), "users/4294967294"),
        (JobKey(7), "jobs/7"),
        (LeaseKey(1001, "login"), "leases/1001/login"),
        (AttachmentKey(7, "c1.example"), "attachments/7/c1.example"),
        (GatewayKey(), "gateway"),
        (HeardKey("g1"), "heard/g1"),
        (ExposedKey(IPv4Address("198.51.100.10"), Transport.TCP, 443), "exposed/198.51.100.10/tcp/443"),
        (RangesKey(), "ranges"),
    ],
)
def test_key_has_one_path(key, path):
    assert KEYS.path(key) == f"/isthmus/blue/network/{path}"
    assert KEYS.parse(KEYS.path(key)) == key


@pytest.mark.parametrize(
    "path",
    [
        "",
        "jobs",
        "jobs/",
        "jobs/0",
        "jobs/07",
        "jobs/+7",
        "jobs/7/",
        "jobs/4294967294",
        "jobs/\u0667",
        "jobs/a",
        "jobs/7/8",
        "jobs/" + "9" * 5000,
        "attachments/7",
        "attachments/07/c1",
        "attachments/7/",
        "users/-1",
        "users/4294967295",
        "nodes/",
        "nodes/a/b",
        "nodes/..",
        "nodes/a b",
        "gateway/g1",
        "heard/",
        "heard/g1/x",
        "exposed/198.51.100.10/tcp",
        "exposed/198.51.100.10/tcp/0",
        "exposed/198.51.100.10/tcp/0443",
        "exposed/198.51.100.10/tcp/65536",
        "exposed/198.51.100.10/sctp/443",
        "exposed/198.51.100.010/tcp/443",
        "exposed/::1/tcp/443",
        "ranges/",
        "leases/1",
        "leases/1/",
        "leases/a/c1",
        "leases/1/c1/x",
        "other/1",
    ],
)
def test_other_paths_are_refused_by_name(path):
    with pytest.raises(StoredError) as caught:
        KEYS.parse(KEYS.prefix + path)
    assert caught.value.key == KEYS.prefix + path
    assert KEYS.prefix + path in str(caught.value)


def test_another_clusters_key_is_refused():
    with pytest.raises(StoredError):
        KEYS.parse(Keys("green").path(JobKey(7)))


@pytest.mark.parametrize("cluster", ["", "a/b", "a b", "..", "-"])
def test_cluster_that_makes_other_keys_is_refused(cluster):
    with pytest.raises(ValueError, match="cluster id"):
        Keys(cluster)


def test_attachments_of_a_job_are_below_one_prefix_and_no_others():
    assert KEYS.path(AttachmentKey(7, "c1")).startswith(KEYS.attachments(7))
    assert not KEYS.path(AttachmentKey(71, "c1")).startswith(KEYS.attachments(7))
