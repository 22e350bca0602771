"""Starts the supervisor."""

import sys

from isthmus.supervisor.main import main

if __name__ == "__main__":
    sys.exit(main())
