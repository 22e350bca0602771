"""Starts the supervisor.

A pod's start waits for what is loaded here, and none of it is garbage: the collector, which would look through all of
it several times, begins afterwards, and with what comes then. A fork then has less to copy, too.
"""

import gc
import sys

gc.disable()

from isthmus.supervisor.main import main  # noqa: E402  the collector rests first

gc.freeze()
gc.enable()

if __name__ == "__main__":
    sys.exit(main())
