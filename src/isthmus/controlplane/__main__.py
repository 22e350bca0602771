"""Starts the control plane."""

import sys

from isthmus.controlplane.main import main

sys.exit(main())
