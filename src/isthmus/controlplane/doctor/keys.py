"""`isthmus doctor`: until when certificates are good, and what becomes of authorities near their end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from isthmus.controlplane.commands.context import Context
from isthmus.controlplane.doctor.findings import Finding, Level
from isthmus.controlplane.pki import authorities
from isthmus.controlplane.pki import issuing as pki
from isthmus.controlplane.pki.authorities import OVERLAP, WINDOW, Authority

_RESTART = "`isthmus down` and `isthmus up`, pods go on meanwhile; a start at the job's time limit does the same"


def certificates(context: Context, now: datetime | None = None) -> Iterator[Finding]:
    """Check when the first certificate expires, and report each authority's succession."""
    layout, now = context.home.cluster, now or datetime.now(UTC)
    ends = dict(pki.expiries(layout)) if layout.pki.is_dir() else {}
    if not ends:
        return
    name, end = min(ends.items(), key=lambda item: item[1])
    if end < now:
        yield Finding(Level.FAILURE, f"{name} expired on {end:%Y-%m-%d}", "`isthmus down` and `isthmus up` renew it")
    else:
        yield Finding(Level.OK, f"certificates are good until {end:%Y-%m-%d} ({name})")
    for each in authorities.NAMES:
        if each in ends and ends[each] - now < WINDOW:
            yield succession(authorities.read(layout, each, now), now)


def succession(found: Authority, now: datetime) -> Finding:
    """Report what the next start does for an authority that expires soon; a warning where no start came for long."""
    end, signs_from = found.signer.not_valid_after_utc, found.signs_from
    words = f"authority {found.name} ends on {end:%Y-%m-%d}"
    if signs_from is None:
        words += "; the next start makes its successor"
    elif now >= signs_from:
        words += "; its successor signs from the next start on"
    else:
        return Finding(Level.OK, f"{words}; its successor signs from the first start after {signs_from:%Y-%m-%d}")
    return Finding(Level.WARNING, words, _RESTART) if end - now < OVERLAP else Finding(Level.OK, words)
