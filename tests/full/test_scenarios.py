import pytest

from tests.support.clusters import playbooks
from tests.support.clusters.cluster import ROOT

SCENARIOS = sorted({path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")})


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario):
    assert playbooks.run(f"molecule_{scenario}", "molecule", "test", "-s", scenario).rc == 0
