"""Who the users of a process of tests are: several processes test one site at once, each as users of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence

EACH = 2


def own_users(users: Sequence[str], worker: str | None = None, each: int = EACH) -> list[str]:
    """Return the users of a process of tests; all of them where it is the only one.

    Args:
        users: The site's.
        worker: pytest-xdist's name of the process, gw0, gw1 and so on; "" where there is one. By default this one's.
        each: how many a process has.
    """
    name = os.environ.get("PYTEST_XDIST_WORKER", "") if worker is None else worker
    if not name:
        return list(users)
    first = int(name.removeprefix("gw")) * each
    found = list(users[first : first + each])
    assert len(found) == each, f"the site has {len(users)} users; give pytest at most -n {len(users) // each}"
    return found
