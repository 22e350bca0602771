"""TLS of a client that shows a certificate; its files are read again when they were renewed.

Programs run for months, certificates do not: a context that was made once would show an old one.
"""

from __future__ import annotations

import ssl
from pathlib import Path

_Stamp = tuple[tuple[int, int], ...]


class ClientTls:
    """A client's trusted authorities and its identity; may be used by several threads.

    Args:
        ca: certificates that a server's must be signed by.
        certificate: the client's own.
        key: of that certificate.
    """

    def __init__(self, ca: Path, certificate: Path, key: Path) -> None:
        self._ca, self._certificate, self._key = ca, certificate, key
        self._made: tuple[_Stamp, ssl.SSLContext] | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context of the files as they are, or the last while they cannot be used, as amid a renewal.

        Raises:
            OSError: there was none yet that can be used; the message names the file.
        """
        made = self._made
        try:
            found = [path.stat() for path in (self._ca, self._certificate, self._key)]
            stamp = tuple((each.st_mtime_ns, each.st_ino) for each in found)
            if made and made[0] == stamp:
                return made[1]
            context = ssl.create_default_context(cafile=str(self._ca))
            context.load_cert_chain(self._certificate, self._key)
        except OSError as error:
            if made:
                return made[1]
            if not isinstance(error, ssl.SSLError):
                raise
            raise OSError(f"{self._ca}, {self._certificate} and {self._key} do not go together: {error}") from error
        self._made = (stamp, context)
        return context
