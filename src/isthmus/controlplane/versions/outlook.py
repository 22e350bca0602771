"""The report on versions for a user: which ran the data, which are there, and what the next start does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.versions import record
from isthmus.controlplane.versions.course import Request, failed
from isthmus.controlplane.versions.plan import Image, RefusedError, ordered


@dataclass(frozen=True, slots=True)
class Outlook:
    """The versions of one cluster.

    Attributes:
        data: the version of Kubernetes that ran the data last; empty for no data.
        there: versions of this site, the newest first.
        wanted: what the user asked for; empty for the newest.
        next: what the next start serves by; empty where it is refused.
        by: the versions that it goes through.
        refusal: why the next start is refused, with the remedy.
        warnings: why it is not the newest, and what failed, with remedies.
    """

    data: str
    there: tuple[str, ...]
    wanted: str
    next: str
    by: tuple[str, ...] = ()
    refusal: str = ""
    warnings: tuple[str, ...] = ()


def look(layout: Layout, images: Sequence[Image], asked: UserOptions) -> Outlook:
    """Return the outlook of a cluster.

    Raises:
        ControlPlaneError: the record cannot be read, or an image of the site has no version.
    """
    known = record.of_data(layout)
    data = known.newest.kubernetes if known else ""
    there = tuple(dict.fromkeys(image.kubernetes for image in reversed(ordered(images))))
    failure = known.failure if known else None
    # Who has asked for it once more knows.
    warnings = [_failure(failure)] if failure and failure.time != asked.kubernetes_again else []
    try:
        made = Request(asked.kubernetes, asked.kubernetes_again).plan(known, images)
    except RefusedError as error:
        return Outlook(data, there, asked.kubernetes, "", refusal=str(error), warnings=tuple(warnings))
    by = tuple(image.kubernetes for image in made.steps[:-1])
    warnings += [made.warning] if made.warning else []
    return Outlook(data, there, asked.kubernetes, made.last.kubernetes, by, warnings=tuple(warnings))


def _failure(failure: record.Failure) -> str:
    again = f"`isthmus down` and `isthmus up --kubernetes {failure.kubernetes}` try it again"
    remedy = again if failure.file else "the next start tries it again"
    return f"{failed(failure)}, and your data are as before; {remedy}"
