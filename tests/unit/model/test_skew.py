"""Who may follow whom: the makers' own examples, and what the tables do not know."""

import pytest

from isthmus.model import skew


@pytest.mark.parametrize(
    ("newer", "older", "right"),
    [
        ("25.11.2", "24.05.1", True),  # "25.11 accepts 25.05, 24.11, 24.05"
        ("26.05.5-1", "24.11.5-4+deb13u1", True),
        ("26.05", "24.05", False),
        ("24.11.5", "23.02.7", True),
        ("24.11.5", "22.05.8", False),
        ("24.05.1", "23.02.1", True),
        ("24.05.1", "22.05.1", False),
        ("24.11.5", "24.11.1", True),
        ("24.11.5", "26.05.5", False),
    ],
)
def test_slurm_reaches_back_as_far_as_its_guide_says(newer, older, right):
    assert skew.SLURM.accepts(newer, older) is right


@pytest.mark.parametrize(
    ("newer", "older", "right"),
    [("3.6.14", "3.5.30", True), ("3.6.14", "3.5.25", False), ("3.7.3", "3.6.0", True), ("3.7.3", "3.5.30", False)],
)
def test_etcd_goes_one_minor_at_a_time_and_from_late_patches_alone(newer, older, right):
    assert skew.ETCD.accepts(newer, older) is right


def test_api_server_goes_one_minor_at_a_time():
    assert skew.KUBERNETES.accepts("1.37.2", "1.36.3")
    assert not skew.KUBERNETES.accepts("1.38.0", "1.36.3")


@pytest.mark.parametrize("version", ["27.05.1", "1", "", "slurm"])
def test_release_that_no_table_has_is_an_error(version):
    with pytest.raises(skew.UnknownVersionError):
        skew.SLURM.place(version)


@pytest.mark.parametrize(
    ("version", "wanted", "right"),
    [
        ("26.05.5-1", "26.05", True),
        ("26.05.5-1", "26.05.5", True),
        ("26.05.5-1", "26.05.5-1", True),
        ("26.05.5-1", "26.0", False),
        ("24.11.5-4+deb13u1", "24.11.5-4", True),
        ("24.11.5-4", "24.1", False),
        ("", "24.11", False),
    ],
)
def test_wanted_version_may_be_cut_off_between_its_parts(version, wanted, right):
    assert skew.fits(version, wanted) is right


@pytest.mark.parametrize(
    ("version", "numbers"), [("2:24.11.5-4", (24, 11, 5)), ("v1.36.3", (1, 36, 3)), ("3.7.0~rc1", (3, 7, 0))]
)
def test_numbers_leave_out_epoch_revision_and_prefix(version, numbers):
    assert skew.numbers(version) == numbers
