"""Garbage collection of the image cache: unused images that the kubelet pulled, by the site's age and size limits.

An image that the user pulled is removed by the user alone (`isthmus images`). Layers are only a cache and are
removed, by whatever they were pulled.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from pathlib import Path

from isthmus.images import keep

_EVERY_S = 3600.0
_DAY_S = 24 * 3600.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Collecting:
    """The collector.

    Attributes:
        cache: ~/.isthmus/images.
        pods: the folders of the user's pods.
        unused_days: how long an unused image is kept; 0 for no limit.
        gib: size limit of all images together; 0 for no limit.
    """

    cache: Path
    pods: Path
    unused_days: int = 30
    gib: int = 0

    async def run(self) -> None:
        """Collect every hour."""
        while True:
            await asyncio.to_thread(self.collect)
            await asyncio.sleep(_EVERY_S)

    def collect(self, *, all_unused: bool = False) -> int:
        """Remove what the limits allow; return the bytes freed.

        Args:
            all_unused: remove every unused image, because the home is full.

        Raises:
            OSError: the home cannot be read or written.
        """
        unused_s = 0.0 if all_unused else self.unused_days * _DAY_S or None
        images, now_s = [*keep.listed(self.cache, self.pods), *keep.layers(self.cache)], time.time()
        gone = keep.surplus(images, now_s, unused_s=unused_s, size_bytes=self.gib << 30 or None)
        gone = [one for one in gone if one.names or one.is_old or one.is_layer]
        for image in (one for one in gone if not one.is_layer):
            _log.info(
                "image %s is removed, unused for %d h", " ".join(image.names) or image.digest, _hours(image, now_s)
            )
        return keep.remove(self.cache, gone)


def _hours(image: keep.Kept, now_s: float) -> int:
    return round((now_s - image.used_s) / 3600)
