"""Who may do what, for all accounts, names and records there can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.model.registry import MOST_USERS, PRIVATE, SITE, Access, Readers, is_namespace, is_repository
from isthmus.registry.rights import ALL, MOST_SCOPES, Scope, ScopeError, granted, scopes

KEEPER = "isthmus"
USERS = ("alice", "bob", "carol")
PULL = frozenset({"pull"})
accounts = st.sampled_from([*USERS, KEEPER, "ghost", "-x", "Bob"])
names = st.one_of(
    st.sampled_from(["alice/tool", "alice", "bob/tool", "isthmus/busybox", "library/x", "alice/../bob", "alicia/x"]),
    st.text(st.sampled_from("ab./_-A%0"), max_size=12),
    st.builds(
        "{}/{}".format,
        st.sampled_from([*USERS, *sorted(SITE), "Bob"]),
        st.text(st.sampled_from("ab./_-A%0"), max_size=8),
    ),
)
actions = st.frozensets(st.sampled_from(["pull", "push", "delete", "*", ""]))
records = st.one_of(
    st.just(PRIVATE),
    st.just(Access(Readers.SITE)),
    st.builds(Access, st.just(Readers.USERS), st.frozensets(st.sampled_from(USERS), min_size=1)),
)


@given(accounts, names, actions, records)
def test_nobody_writes_but_the_owner(account, name, wanted, record):
    given_ = granted(account, Scope("repository", name, wanted), KEEPER, lambda _: record)
    assert given_ <= wanted & ALL
    owner = name.partition("/")[0]
    if given_ - PULL:
        assert is_repository(name)
        assert (owner in SITE and account == KEEPER) or (owner == account and is_namespace(account))
    if given_ and owner not in SITE:
        assert account == owner or (account != KEEPER and record.admits(account))


@given(accounts, names, actions, records)
def test_who_may_is_given_what_he_wants(account, name, wanted, record):
    given_ = granted(account, Scope("repository", name, wanted), KEEPER, lambda _: record)
    owner = name.partition("/")[0]
    if is_repository(name) and owner == account and account in USERS:
        assert given_ == wanted & ALL
    if is_repository(name) and owner in SITE:
        assert given_ >= wanted & PULL
    if is_repository(name) and is_namespace(owner) and account not in (owner, KEEPER) and record.admits(account):
        assert given_ == wanted & PULL


@given(accounts, st.sampled_from(["registry", "repository(plugin)", "", "Repository"]), names, actions)
def test_nothing_but_repositories_is_given(account, kind, name, wanted):
    assert not granted(account, Scope(kind, name, wanted), KEEPER, lambda _: Access(Readers.SITE))


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ([], []),
        (["repository:alice/x:pull"], [Scope("repository", "alice/x", PULL)]),
        (["repository:a:pull,push repository:b:pull"], ["a", "b"]),
        (["repository:host:5000/a:pull"], ["host:5000/a"]),
        (["registry:catalog:*"], ["catalog"]),
    ],
)
def test_scopes_are_read_as_clients_send_them(asked, read):
    found = scopes(asked)
    assert found == read or [scope.name for scope in found] == read


@pytest.mark.parametrize("word", ["x", "repository:x", ":x:pull", "repository::pull", "repository:x:"])
def test_scope_that_is_none_is_refused(word):
    with pytest.raises(ScopeError):
        scopes([word])


def test_many_scopes_are_refused():
    with pytest.raises(ScopeError, match="more than"):
        scopes(["repository:a:pull " * (MOST_SCOPES + 1)])


@pytest.mark.parametrize("user", [*sorted(SITE), "", "Alice", "alice_", "-a", "a/b", "a..b", "..", "a b"])
def test_name_that_cannot_be_a_namespace(user):
    assert not is_namespace(user)


@pytest.mark.parametrize("user", ["alice", "a1", "a.b", "a-b", "a__b"])
def test_name_that_can(user):
    assert is_namespace(user)
    assert is_repository(f"{user}/tool")


def test_record_names_few_users():
    assert MOST_USERS < 1000
    assert Access(Readers.USERS, frozenset({"bob"})).words() == "bob"
