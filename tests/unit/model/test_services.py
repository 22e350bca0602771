"""Tables of Services: rows, differences, bounds."""

from isthmus.model import services
from isthmus.model.services import Transport, bounded, changes, rows
from tests.support.pods.services import answering, place

WEB = place()


def test_row_holds_all():
    assert rows({WEB: answering("10.64.0.3:8080", "10.64.0.4:81", affinity_s=5)}) == [
        ["10.96.0.9", "tcp", 80, 5, ["10.64.0.3:8080", "10.64.0.4:81"]]
    ]


def test_changes_name_what_differs_alone():
    dns = place("10.96.0.10", 53, Transport.UDP)
    have = {WEB: answering("10.64.0.3:8080"), dns: answering()}
    assert changes(have, have) == ([], [])
    assert changes(have, {WEB: answering()}) == ([["10.96.0.9", "tcp", 80, 0, []]], ["10.96.0.10 udp 53"])
    assert changes({}, have) == (rows(have), [])


def test_table_is_cut_at_its_bounds(monkeypatch):
    for name, value in (("SERVICES_MAX", 3), ("ENDPOINTS_MAX", 4), ("ENDPOINTS_OF_ONE_MAX", 3)):
        monkeypatch.setattr(services, name, value)
    three, four = (answering(*(f"10.64.0.{number}:1" for number in range(count)), affinity_s=9) for count in (3, 4))
    kept, short = bounded({place(port=port): each for port, each in enumerate((four, four, three, three), 1)})
    assert [len(each.endpoints) for each in kept.values()] == [3, 1, 0]
    assert {each.affinity_s for each in kept.values()} == {9}
    assert short == [place(port=port) for port in (1, 2, 3, 4)]


def test_table_within_its_bounds_is_kept():
    table = {WEB: answering("10.64.0.3:8080"), place(port=81): answering()}
    assert bounded(table) == (table, [])
