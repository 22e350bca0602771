"""Accounts of an image, whose files anybody may have written."""

from hypothesis import given
from hypothesis import strategies as st

from isthmus.model.image_accounts import IDS, Account, read

USERS = """root:x:0:0:root:/root:/bin/sh
app:x:1000:1001:App:/home/app:/bin/sh
app:x:7:7::/second:/bin/sh
old:x:1000:5
far:x:70000:1::/:/bin/sh
wide:x:²:1::/:/bin/sh
odd:x:8:8::relative:/bin/sh
bad:x:9:9::/a\tb:/bin/sh
"""
GROUPS = "app:x:1001:\nwheel:x:10:root,app,app\nshort:x:11\nfar:x:70000:app\nother:x:12:app,\n"


def test_first_line_of_a_name_or_number_counts():
    found = read(USERS, GROUPS)
    assert found.named("app") == Account("app", 1000, 1001, "/home/app")
    assert found.numbered(1000) == found.named("app")
    assert found.numbered(70000) is None


def test_groups_are_those_that_list_the_user():
    found = read(USERS, GROUPS)
    assert found.members == {"root": (10,), "app": (10, 12)}
    assert found.groups == {"app": 1001, "wheel": 10, "short": 11, "other": 12}


def test_home_that_is_no_path_is_none():
    found = read(USERS, GROUPS)
    assert [found.numbered(uid).home for uid in (8, 9)] == ["", ""]


@given(st.text(alphabet=":,\n0123456789ax/\x00\ud800²"), st.text(alphabet=":,\n0123456789ax/\x00"))
def test_any_text_gives_numbers_that_a_pod_has(passwd, group):
    found = read(passwd, group)
    numbers = [number for one in found.users for number in (one.uid, one.gid)]
    numbers += [*found.groups.values(), *(number for listed in found.members.values() for number in listed)]
    assert all(0 <= number < IDS for number in numbers)
