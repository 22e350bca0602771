"""The model that extends measured networks' set-up to larger sites."""

import pytest

from tests.bench.network_model import fit

SIZES = (2, 4, 8, 16)


def model(alone, etcd, daemon):
    """Fit to times given as functions of a size."""
    swarm = {n: {"etcd_cpu_s": n * etcd(n), "daemon_cpu_s": daemon(n)} for n in SIZES}
    return fit(swarm, {n: {"undisturbed_s": alone(n)} for n in SIZES}, cores=2)


def test_lines_are_found():
    found = model(lambda n: 0.02 + 0.001 * n, lambda n: 0.003 + 0.0001 * n, lambda n: 0.01 + 0.0002 * n)
    assert found.alone == pytest.approx((0.02, 0.001))
    assert found.etcd == pytest.approx((0.003, 0.0001))
    assert found.site(100) == pytest.approx(0.12 + 100 * 0.013)
    assert found.swarm(100) == pytest.approx(0.12 + 100 * (0.03 + 0.013) / 2)


def test_times_that_stay_equal_have_no_slope():
    # Weighted, these have a slope of 6e-38 to binary fractions, and no correlation.
    found = model(lambda n: 0.0001, lambda n: 0.003, lambda n: 0.01)
    assert found.alone == pytest.approx((0.0001, 0))
    assert found.etcd == pytest.approx((0.003, 0))


def test_no_time_grows_shorter_with_nodes():
    assert model(lambda n: 0.03 - 0.001 * n, lambda n: 0.003, lambda n: 0.01).alone[1] == 0
