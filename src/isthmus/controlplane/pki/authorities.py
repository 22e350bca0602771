"""The cluster's own authorities, each of ten years, and how one succeeds another while clients go on.

`<name>.crt` is what is trusted: the certificate that signs, first, then its successor or predecessor. `<name>.key` is
the signing key. A successor comes in three steps, each at a start of the control plane, before any program runs:

1. Two years before the end it is made and trusted, and signs nothing; its key waits in `<name>-next.key`.
2. A year later it signs; its predecessor stays trusted. All that the predecessor signed lives for a year at most, so
   each kubeconfig that still lets its owner in was written after the first step, and knows the successor.
3. The predecessor has ended, and is trusted no longer.

A cluster that was down meanwhile hurries: the second step then comes as soon as clients can have heard of the first,
and at once when the predecessor has ended. Programs read their trust at their start, hence steps at starts alone.
The new certificate is not signed by the old one too: authorities here may have none below them (path length 0).

Which certificate signs follows from the key alone, so the second step is the renaming of one file. What a crash left
half done, the next start completes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki import files
from isthmus.controlplane.pki.files import RENEWAL
from isthmus.support import certificates
from isthmus.support.certificates import EARLIER, PrivateKey, Subject

NAMES = ("ca", "etcd-ca", "front-proxy-ca", "pods-ca")
# The signer alone: the controller manager takes no file with more.
SIGNER = "ca-signer"
LIFE = timedelta(days=3650)
# As long as anything lives that was given out with the old authority alone.
OVERLAP = files.LIFE
WINDOW = 2 * OVERLAP
# In a hurry: by then kube-root-ca.crt and the credentials of pods are in every pod.
_HURRIED_OVERLAP = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """One authority as its files show.

    Attributes:
        name: of its files.
        signer: what signs.
        successor: what will.
        former: what did, and has not ended.
    """

    name: str
    signer: x509.Certificate
    successor: x509.Certificate | None = None
    former: tuple[x509.Certificate, ...] = ()

    @property
    def trusted(self) -> list[x509.Certificate]:
        """The certificates that clients trust."""
        return [self.signer, *([self.successor] if self.successor else []), *self.former]

    @property
    def signs_from(self) -> datetime | None:
        """From when on a start lets the successor sign; None where there is no successor."""
        if self.successor is None:
            return None
        return switch(self.signer.not_valid_after_utc, self.successor.not_valid_before_utc + EARLIER)


def switch(end: datetime, published: datetime) -> datetime:
    """Return from when on a successor signs.

    Args:
        end: of what signs now.
        published: when the successor was first trusted.
    """
    hurried = max(end - RENEWAL, published + _HURRIED_OVERLAP)
    return min(published + OVERLAP, hurried, max(end, published))


def read(layout: Layout, name: str, now: datetime) -> Authority:
    """Return an authority.

    Raises:
        ControlPlaneError: no certificate fits the key.
        OSError: a file is missing.
    """
    known = files.read(layout.certificate(name))
    key = files.read_key(layout.key(name)).public_key()
    signer = next((each for each in known if each.public_key() == key), None)
    if signer is None:
        raise ControlPlaneError(
            f"{layout.key(name)} does not fit {layout.certificate(name)}; bring both back from one backup, or begin "
            "again with `isthmus down --purge`, which loses all objects"
        )
    others = [each for each in known if each != signer]
    later = [each for each in others if each.not_valid_after_utc > signer.not_valid_after_utc]
    waiting = _next_public_key(layout, name)
    # A successor whose key is lost never signed, so nobody misses it.
    successor = next((each for each in later if each.public_key() == waiting), None)
    former = tuple(each for each in others if each not in later and each.not_valid_after_utc > now)
    return Authority(name, signer, successor, former)


def ensure(layout: Layout, name: str, now: datetime) -> bool:
    """Make an authority where there is none; return whether it was made."""
    if layout.certificate(name).exists():
        return False
    key = certificates.new_key()
    files.write_key(layout.key(name), key)
    files.write(layout.certificate(name), [_made(f"isthmus {name}", key, now)])
    return True


def advance(layout: Layout, now: datetime) -> Iterator[str]:
    """Take the steps that are due, and yield what was done; nothing that reads these files may run.

    Raises:
        ControlPlaneError: no certificate fits the key.
        OSError: a file cannot be read or written.
    """
    for name in NAMES:
        if layout.certificate(name).exists():
            yield from _advance(layout, name, now)


def _advance(layout: Layout, name: str, now: datetime) -> Iterator[str]:
    found = read(layout, name, now)
    while said := _step(layout, found, now):
        yield said
        # As the next start would after a crash.
        found = read(layout, name, now)
    files.write(layout.certificate(name), found.trusted)
    if found.successor is None:
        layout.key(_next(name)).unlink(missing_ok=True)


def _step(layout: Layout, found: Authority, now: datetime) -> str:
    """Take the next step and return it; "" when none is due."""
    name, end = found.name, found.signer.not_valid_after_utc
    if found.signs_from is None and end - now < WINDOW:
        _publish(layout, found, now)
        return f"{name} ends on {end:%Y-%m-%d}: its successor is trusted from now on"
    if found.signs_from is not None and now >= found.signs_from:
        files.write_key(layout.key(name), files.read_key(layout.key(_next(name))))
        return f"{name} ends on {end:%Y-%m-%d}: its successor signs from now on"
    return ""


def _publish(layout: Layout, found: Authority, now: datetime) -> None:
    key = certificates.new_key()
    made = _made(f"isthmus {found.name} {now:%Y-%m-%d}", key, now)
    # The key first: without its certificate it is nothing, and made again.
    files.write_key(layout.key(_next(found.name)), key)
    files.write(layout.certificate(found.name), [found.signer, made, *found.former])


def _made(subject: str, key: PrivateKey, now: datetime) -> x509.Certificate:
    return certificates.authority(Subject(certificates.name(subject)), key, LIFE, now)


def _next(name: str) -> str:
    return f"{name}-next"


def _next_public_key(layout: Layout, name: str) -> ec.EllipticCurvePublicKey | None:
    try:
        return files.read_key(layout.key(_next(name))).public_key()
    except (FileNotFoundError, TypeError, ValueError):
        return None
