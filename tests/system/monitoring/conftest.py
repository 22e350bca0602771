"""A site that is watched; others have nothing to test here."""

import pytest

from tests.support.clusters import monitoring


@pytest.fixture(scope="session", autouse=True)
def watched(controller):
    """Skip where the site's admin wants none."""
    if controller.run(f"test -e {monitoring.FOLDER}/prometheus.yml").rc:
        pytest.skip("the site is not watched: monitoring_enabled is false")
