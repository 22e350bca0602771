import pytest

from isthmus.filters.apptainer import apptainer_conf, apptainer_subid_file
from isthmus.filters.errors import InputError

COUNT = 65536
CONF = """\
# allow setuid = a comment about it
allow setuid = yes
bind path = /etc/localtime
bind path = /etc/hosts
#bind path = /opt
# mksquashfs mem = 1G
"""


def lines(text, first=None, users=("alice", "bob"), chosen=()):
    return apptainer_subid_file(
        text, text if first is None else first, "/etc/subuid", users, chosen, COUNT
    ).splitlines()


def test_new_users_get_ranges_side_by_side():
    assert lines("") == ["alice:100000:65536", "bob:165536:65536"]


def test_present_ranges_stay():
    assert lines("bob:300000:1000\n") == ["alice:301000:65536", "bob:300000:1000"]


def test_file_is_restored_at_once():
    once = lines("web:100000:65536\n")
    assert lines("\n".join(once)) == once


def test_other_hosts_get_what_the_controller_has():
    first = "bob:100000:65536\nalice:165536:65536\n"
    here = "alice:100000:65536\nweb:900000:10\n"
    assert lines(here, first) == ["web:900000:10", "alice:165536:65536", "bob:100000:65536"]


def test_chosen_range_wins_and_needs_no_user_of_the_site():
    chosen = [{"name": "alice", "start": 500000, "count": 10}, {"name": "ldap", "start": 600000, "count": 10}]
    assert lines("alice:100000:65536\n", chosen=chosen) == ["alice:500000:10", "ldap:600000:10", "bob:600010:65536"]


def test_several_ranges_of_one_user_stay():
    assert lines("alice:100000:10\nalice:200000:10\n", users=["alice"]) == ["alice:100000:10", "alice:200000:10"]


@pytest.mark.parametrize(
    ("text", "chosen", "reported"),
    [
        (
            "web:100000:10\n",
            {"name": "alice", "start": 100009, "count": 5},
            r"alice \(100009 to 100013\) and .* of web",
        ),
        ("bob:200000:10\n", {"name": "alice", "start": 199990, "count": 11}, "range of alice .* and the range of bob"),
        ("web:100000:1000\n", {"name": "alice", "start": 100400, "count": 5}, "range of alice .* and the range of web"),
    ],
)
def test_overlap_names_both_users_and_the_file(text, chosen, reported):
    with pytest.raises(InputError, match=f"^/etc/subuid: .*{reported}"):
        lines(text, chosen=[chosen])


def test_last_ids_are_not_overrun():
    with pytest.raises(InputError, match="no 65536 ids are left for alice; choose a range"):
        lines("web:4294900000:60000\n")


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, ["allow setuid = yes", "bind path = /etc/localtime", "bind path = /etc/hosts"]),
        ({"allow setuid": False}, ["allow setuid = no", "bind path = /etc/localtime", "bind path = /etc/hosts"]),
        ({"bind path": ["/a", "/b"]}, ["allow setuid = yes", "bind path = /a", "bind path = /b"]),
        ({"bind path": [], "mksquashfs mem": "2G"}, ["allow setuid = yes", "mksquashfs mem = 2G"]),
    ],
)
def test_settings_take_their_places(settings, wanted):
    written = apptainer_conf(CONF, settings).splitlines()
    assert [line for line in written if not line.startswith("#")] == wanted
    assert [line for line in written if line.startswith("#")] == [line for line in CONF.splitlines() if line[0] == "#"]


def test_unknown_setting_is_refused():
    with pytest.raises(
        InputError, match="unknown setting in apptainer_conf: 'alow setuid'; did you mean 'allow setuid'"
    ):
        apptainer_conf(CONF, {"alow setuid": True})
