"""Third-party programs: unknown names and ways, and an empty mirror."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site
from isthmus.model.programs import MIRROR_INDEX

PROGRAMS, ORDER, MIRROR = "artifacts_programs", "artifacts_order", "artifacts_mirror"


def artifact_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the choice of programs, with the order of ways, and with a mirror on this machine."""
    for variable in (PROGRAMS, ORDER):
        names = site.shared(variable)
        if isinstance(names, list) and names:
            known = site.role_specs["artifacts"]["argument_specs"]["main"]["options"][variable]["choices"]
            for name in [name for name in names if name not in known]:
                yield site.problem_of(unknown(f"name in {variable}", str(name), known), variable)
    order = site.shared(ORDER)
    if isinstance(order, list) and (not order or len({*map(str, order)}) < len(order)):
        yield site.problem(f"{ORDER} is {order}", "name each way at most once, and at least one", ORDER)
    mirror = site.shared(MIRROR)
    if mirror and "://" not in str(mirror) and not Path(str(mirror), MIRROR_INDEX).is_file():
        yield site.problem(
            f"{MIRROR} {mirror} has no {MIRROR_INDEX}", "lay out a bundle there, or leave it empty", MIRROR
        )
