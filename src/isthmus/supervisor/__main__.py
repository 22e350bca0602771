"""Starts the supervisor.

A pod's start waits for these imports, and none of them is garbage: the collector, which would scan all of
them several times, is enabled afterwards for new objects only. Forks then copy fewer pages, too.
"""

import gc
import sys

gc.disable()

from isthmus.supervisor.main import main  # noqa: E402  the collector rests first

gc.freeze()
gc.enable()

if __name__ == "__main__":
    sys.exit(main())
