"""slurmdbd's state: the sacctmgr queries, and the parser of their output.

`WOPLimits` matters: without it a user's line also shows the limits and QOS of the parent account, and none would seem
to be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from isthmus.filters.errors import InputError
from isthmus.model.slurm.limits import ASSOCIATION_LIMITS, QOS_LIMITS

ACCOUNT_FIELDS = ("Account", "Description", "Organization")
QOS_FIELDS = ("Name", "Priority", *QOS_LIMITS)
ASSOCIATION_FIELDS = (
    *("Cluster", "Account", "ParentName", "User", "Partition", "DefaultQOS", "QOS"),
    *ASSOCIATION_LIMITS,
)
USER_FIELDS = ("User", "DefaultAccount", "Cluster")
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Accounting:
    """The accounting of one cluster; an association's key is (account, user), '' for no user."""

    cluster_known: bool
    accounts: dict[str, Row]
    qos: dict[str, Row]
    associations: dict[tuple[str, str], Row]
    default_accounts: dict[str, str]


def slurm_accounting_queries(cluster: str) -> dict[str, list[str]]:
    """Return the commands whose outputs `slurm_accounting_plan` reads: key -> argv."""
    show = ["sacctmgr", "-nP", "show"]
    here = ["where", f"cluster={cluster}"]
    return {
        "accounts": [*show, "account", _format(ACCOUNT_FIELDS)],
        "qos": [*show, "qos", _format(QOS_FIELDS)],
        "associations": [*show, "association", *here, "WOPLimits", _format(ASSOCIATION_FIELDS)],
        "users": [*show, "user", "WithAssoc", *here, _format(USER_FIELDS)],
    }


def read_accounting(current: Mapping[str, str], cluster: str) -> Accounting:
    """Parse the outputs of `slurm_accounting_queries`, under the same keys.

    Raises:
        InputError: for a line with another number of fields, i.e. the output of another query.
    """
    associations = [row for row in _rows(current, "associations", ASSOCIATION_FIELDS) if row["Cluster"] == cluster]
    return Accounting(
        cluster_known=bool(associations),
        accounts={row["Account"]: row for row in _rows(current, "accounts", ACCOUNT_FIELDS)},
        qos={row["Name"]: row for row in _rows(current, "qos", QOS_FIELDS)},
        associations={(row["Account"], row["User"]): row for row in associations if not row["Partition"]},
        default_accounts={
            row["User"]: row["DefaultAccount"]
            for row in _rows(current, "users", USER_FIELDS)
            if row["Cluster"] == cluster
        },
    )


def _format(fields: Sequence[str]) -> str:
    return f"format={','.join(fields)}"


def _rows(current: Mapping[str, str], query: str, fields: Sequence[str]) -> Iterator[Row]:
    for line in filter(None, current[query].splitlines()):
        values = line.split("|")
        if len(values) != len(fields):
            raise InputError(f"the {query} have a line with {len(values)} fields", f"expected {len(fields)}")
        yield dict(zip(fields, values, strict=True))
