"""Which hosts Prometheus asks, what it trusts as a password, and who is notified of alerts."""

import bcrypt

from isthmus.filters import monitoring

GROUPS = {"controller": ["ctl"], "compute": ["c1"], "login": []}


def test_targets_have_names_and_kinds():
    addresses = [{"name": name, "address": f"10.0.0.{n}"} for n, name in enumerate(("ctl", "c1", "db"), 1)]
    found = monitoring.monitoring_targets(addresses, GROUPS, 9100)
    assert found[0] == {"targets": ["10.0.0.1:9100"], "labels": {"instance": "ctl", "kind": "controller"}}
    assert [each["labels"]["kind"] for each in found[1:]] == ["compute", "other"]


def test_hash_of_a_password_stays_and_is_of_it_alone():
    found = monitoring.monitoring_password_hash("secret")
    assert found == monitoring.monitoring_password_hash("secret")
    assert bcrypt.checkpw(b"secret", found.encode())
    assert found[:29] != monitoring.monitoring_password_hash("secret2")[:29]


def test_alerts_without_receivers_are_shown_only():
    found = monitoring.monitoring_alertmanager([], {})
    assert found["receivers"] == [{"name": monitoring.NOBODY}]
    assert found["route"]["receiver"] == monitoring.NOBODY


def test_first_receiver_is_reported_unless_a_route_says_otherwise():
    receivers = [{"name": "mail"}, {"name": "chat"}]
    assert monitoring.monitoring_alertmanager(receivers, {})["route"]["receiver"] == "mail"
    routed = monitoring.monitoring_alertmanager(receivers, {"receiver": "chat", "group_wait": "1s"})["route"]
    assert (routed["receiver"], routed["group_wait"], routed["repeat_interval"]) == ("chat", "1s", "12h")


def test_nobody_is_notified_of_information_unless_the_site_says_so():
    found = monitoring.monitoring_alertmanager([{"name": "mail"}], {"routes": [{"receiver": "mail"}]})
    quiet = {"matchers": ['severity="info"'], "receiver": monitoring.NOBODY}
    assert found["route"]["routes"] == [{"receiver": "mail"}, quiet]
    assert [each["name"] for each in found["receivers"]] == ["mail", monitoring.NOBODY]
    own = monitoring.monitoring_alertmanager([{"name": monitoring.NOBODY}], {})
    assert own["receivers"] == [{"name": monitoring.NOBODY}]


def test_sources_are_on_the_loopback():
    assert monitoring.monitoring_sources({"etcd": 2381}) == {"etcd": "http://127.0.0.1:2381/metrics"}
