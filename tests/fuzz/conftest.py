"""How much the fuzz tests try: a little within `make unit`, much with `make fuzz` (ISTHMUS_FUZZ=long).

What the long run finds is kept in results/fuzz and tried first by the next; once mended it becomes an @example here.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.support.clusters.cluster import ROOT

# A busy machine is no failure.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
KEPT = DirectoryBasedExampleDatabase(ROOT / "results/fuzz")

settings.register_profile("short", max_examples=200, database=None, **COMMON)
settings.register_profile("long", max_examples=20_000, database=KEPT, print_blob=True, **COMMON)
settings.load_profile(os.environ.get("ISTHMUS_FUZZ", "short"))
