"""Computes the fewest sacctmgr commands from slurmdbd's present to the inventory's desired state.

The plan is data, so a role can show it in check mode, run it line by line, and be sure that an empty plan
means no change. What an administrator added by hand is kept; only users marked absent lose their associations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.accounting_state import Accounting, read_accounting
from isthmus.filters.slurm.limits import limit_changes
from isthmus.filters.suggest import check_keys, unknown
from isthmus.model.slurm.limits import ASSOCIATION_LIMITS, QOS_LIMITS, LimitKind

ROOT = "root"

Argv = list[str]

_SACCTMGR = ("sacctmgr", "-i")
_DESIRED_KEYS = ("cluster", "accounts", "qos", "users")
_ACCOUNT_KEYS = ("name", "description", "organization", "parent", "limits")
_QOS_KEYS = ("name", "priority", "limits")
_USER_KEYS = ("name", "account", "accounts", "default_qos", "qos", "limits", "state")


def slurm_accounting_plan(current: Mapping[str, str], desired: Mapping[str, Any]) -> list[Argv]:
    """Return the sacctmgr commands that bring slurmdbd from `current` to `desired`.

    Args:
        current: the outputs of `slurm_accounting_queries`, under the same keys.
        desired: cluster (name), accounts, qos, users as in the role's variables.

    Returns:
        argv lists in the order to run them; empty when nothing differs.

    Raises:
        InputError: for unknown keys, accounts, QOS or limits, a parent chain without end, a name used
            twice, or output of other queries.
    """
    check_keys("the accounting plan", desired, _DESIRED_KEYS, required=["cluster"])
    cluster = desired["cluster"]
    found = read_accounting(current, cluster)
    accounts, qos, users = (
        _by_name(kind, desired.get(kind) or (), keys)
        for kind, keys in (("accounts", _ACCOUNT_KEYS), ("qos", _QOS_KEYS), ("users", _USER_KEYS))
    )
    plan = [] if found.cluster_known else [["add", "cluster", cluster]]
    for name, each in qos.items():
        plan += _plan_qos(name, each, found)
    for name in _parents_first(accounts, found):
        plan += _plan_account(name, accounts[name], found, cluster)
    for name, each in users.items():
        _check_user(name, each, {*accounts, *found.accounts}, {*qos, *found.qos})
        plan += _plan_user(name, each, found, cluster)
    return [[*_SACCTMGR, *command] for command in plan]


def _by_name(kind: str, items: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    named: dict[str, Mapping[str, Any]] = {}
    for item in items:
        check_keys(f"an entry of slurm_{kind}", item, keys, required=["name"])
        # slurmdbd stores these names in lower case.
        name = str(item["name"]).lower()
        if name in named:
            raise InputError(f"{name} is in slurm_{kind} twice", "keep one entry")
        named[name] = item
    return named


def _plan_qos(name: str, qos: Mapping[str, Any], found: Accounting) -> Iterator[Argv]:
    wanted = dict(qos.get("limits") or {})
    if qos.get("priority") is not None:
        wanted = {"Priority": qos["priority"], **wanted}
    kinds = {"Priority": LimitKind.NUMBER, **QOS_LIMITS}
    changes = limit_changes(f"QOS {name}", wanted, found.qos.get(name, {}), kinds)
    if name not in found.qos:
        yield ["add", "qos", name, *changes]
    elif changes:
        yield ["modify", "qos", "where", f"name={name}", "set", *changes]


def _plan_account(name: str, account: Mapping[str, Any], found: Accounting, cluster: str) -> Iterator[Argv]:
    row = found.associations.get((name, ""))
    texts = _text_changes(account, found.accounts.get(name, {}))
    limits = limit_changes(f"account {name}", account.get("limits") or {}, row or {}, ASSOCIATION_LIMITS)
    parent = str(account.get("parent") or ROOT).lower()
    if row is None:
        yield ["add", "account", name, f"cluster={cluster}", f"parent={parent}", *texts, *limits]
        return
    if texts:
        yield ["modify", "account", "where", f"name={name}", "set", *texts]
    if account.get("parent") and row["ParentName"] != parent:
        limits = [f"parent={parent}", *limits]
    if limits:
        yield ["modify", "account", "where", f"name={name}", f"cluster={cluster}", "set", *limits]


def _text_changes(account: Mapping[str, Any], row: Mapping[str, str]) -> list[str]:
    changes = []
    for field in ("Description", "Organization"):
        text = str(account.get(field.lower()) or "")
        if set(text) & set("|\n\"'"):
            raise InputError(f"{field} of account {account['name']} is {text!r}", "leave out | and quotes")
        # slurmdbd stores them in lower case.
        if text and text.lower() != row.get(field, ""):
            changes.append(f"{field}={text}")
    return changes


def _parents_first(accounts: Mapping[str, Mapping[str, Any]], found: Accounting) -> list[str]:
    """Sort accounts so that each follows its parent."""
    ordered: list[str] = []
    for start in accounts:
        chain = [start]
        while parent := str(accounts.get(chain[-1], {}).get("parent") or "").lower():
            if parent in chain:
                raise InputError(f"account {start} is above itself", "correct parent in slurm_accounts")
            if parent not in (*accounts, *found.accounts, ROOT):
                raise unknown(f"parent of account {chain[-1]}", parent, {*accounts, *found.accounts, ROOT})
            chain.append(parent)
        ordered += [name for name in reversed(chain) if name in accounts and name not in ordered]
    return ordered


def _check_user(name: str, user: Mapping[str, Any], accounts: set[str], qos: set[str]) -> None:
    if user.get("state", "present") not in ("present", "absent"):
        raise unknown(f"state of user {name}", str(user["state"]), ("present", "absent"))
    if user.get("state") == "absent":
        return
    if not user.get("account"):
        raise InputError(f"user {name} has no account", "set account in slurm_users")
    for account in _accounts(user):
        if account not in accounts:
            raise unknown(f"account of user {name}", account, accounts)
    default_qos, allowed = user.get("default_qos"), user.get("qos") or ()
    for each in (*allowed, *filter(None, [default_qos])):
        if each not in qos:
            raise unknown(f"QOS of user {name}", each, qos)
    if default_qos and allowed and default_qos not in allowed:
        raise InputError(f"qos of user {name} lacks the default_qos {default_qos}", "add it there")


def _accounts(user: Mapping[str, Any]) -> list[str]:
    names = (user["account"], *(user.get("accounts") or ()))
    return list(dict.fromkeys(str(name).lower() for name in names))


def _plan_user(name: str, user: Mapping[str, Any], found: Accounting, cluster: str) -> Iterator[Argv]:
    here = ["where", f"name={name}", f"cluster={cluster}"]
    if user.get("state") == "absent":
        if any(member == name for _, member in found.associations):
            yield ["delete", "user", *here]
        return
    accounts = _accounts(user)
    for account in accounts:
        row = found.associations.get((account, name))
        where = f"user {name} in account {account}"
        changes = [
            *_qos_changes(user, row or {}),
            *limit_changes(where, user.get("limits") or {}, row or {}, ASSOCIATION_LIMITS),
        ]
        if row is None:
            # The first association of a user makes its account the default one.
            yield ["add", "user", name, f"cluster={cluster}", f"account={account}", *changes]
        elif changes:
            yield ["modify", "user", *here, f"account={account}", "set", *changes]
    if found.default_accounts.get(name, accounts[0]) != accounts[0]:
        yield ["modify", "user", *here, "set", f"DefaultAccount={accounts[0]}"]


def _qos_changes(user: Mapping[str, Any], row: Mapping[str, str]) -> Iterator[str]:
    allowed = user.get("qos") or ()
    if allowed and set(allowed) != set(row.get("QOS", "").split(",")):
        yield f"QOS={','.join(allowed)}"
    if user.get("default_qos") and user["default_qos"] != row.get("DefaultQOS", ""):
        yield f"DefaultQOS={user['default_qos']}"
