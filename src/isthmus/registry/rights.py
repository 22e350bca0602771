"""Authorization: a pure function of the account, the repository, and its owner's settings.

| repository | its owner | the site's account | others |
|---|---|---|---|
| a user's | pull, push, delete | nothing | pull, where the owner's record admits them |
| the site's | - | pull, push, delete | pull |
| any other, the catalog | nothing | nothing | nothing |

Whether there is room for a push is asked at each write (`room`), where the client gets the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from isthmus.model.registry import SITE, Access, is_namespace, is_repository, namespace

ALL = frozenset({"pull", "push", "delete"})
_NONE: frozenset[str] = frozenset()
# A client asks for a repository, and for those whose blobs it would mount.
MOST_SCOPES = 16


class ScopeError(ValueError):
    """A scope that is none."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a client asks for.

    Attributes:
        kind: of resource; all but `repository` are refused.
        name: of the resource.
        actions: wanted.
    """

    kind: str
    name: str
    actions: frozenset[str]


def scopes(asked: Iterable[str]) -> list[Scope]:
    """Read scopes as clients send them, several in one word or each in its own (distribution, token scopes).

    Raises:
        ScopeError: one is none, or there are too many.
    """
    words = [word for text in asked for word in text.split(" ") if word]
    if len(words) > MOST_SCOPES:
        raise ScopeError(f"more than {MOST_SCOPES} scopes")
    return [_scope(word) for word in words]


def granted(account: str, scope: Scope, keeper: str, access: Callable[[str], Access]) -> frozenset[str]:
    """Return those of the wanted actions that an account may do.

    Args:
        account: who has shown its password.
        scope: what it wants.
        keeper: the account that fills the site's namespaces.
        access: repository of a user -> what its owner has said; private where they have said nothing.
    """
    return scope.actions & _allowed(account, scope, keeper, access)


def _allowed(account: str, scope: Scope, keeper: str, access: Callable[[str], Access]) -> frozenset[str]:
    if scope.kind != "repository" or not is_repository(scope.name):
        return _NONE
    owner = namespace(scope.name)
    if owner in SITE:
        return ALL if account == keeper else frozenset({"pull"})
    if account == keeper or not is_namespace(owner):
        return _NONE
    if account == owner:
        return ALL
    return frozenset({"pull"}) if access(scope.name).admits(account) else _NONE


def _scope(word: str) -> Scope:
    kind, colon, rest = word.partition(":")
    name, second, actions = rest.rpartition(":")
    if not (colon and second and kind and name and actions):
        raise ScopeError("a scope is type:name:action[,action]")
    return Scope(kind, name, frozenset(actions.split(",")))
